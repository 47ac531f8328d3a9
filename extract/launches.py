"""Launch sites and references of one parsed unit, found in the bodies of the framework's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clang.cindex import CursorKind

from astra_integrate.extract.cursors import CLASSES, FUNCTIONS, candidates, is_kernel, qualified_name
from astra_integrate.extract.declarations import Found, OwnFiles
from astra_integrate.extract.demangle import demangle, template_id
from astra_integrate.extract.locations import spelling_location
from astra_integrate.extract.sites import FileSites
from astra_integrate.records import Launch

_REFERENCES = frozenset({CursorKind.DECL_REF_EXPR, CursorKind.OVERLOADED_DECL_REF})
_MENTIONS = _REFERENCES | {CursorKind.MEMBER_REF_EXPR, CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF}
_VALUES = _REFERENCES | {CursorKind.MEMBER_REF_EXPR}
# A variable template has no kind of its own.
_VARIABLES = frozenset({CursorKind.VAR_DECL, CursorKind.FIELD_DECL, CursorKind.UNEXPOSED_DECL})
_RUNTIME = {
    "cudaLaunchKernelEx": 1,
    "cudaLaunchKernelExC": 1,
    "cudaLaunchKernel": 0,
    "cudaLaunchCooperativeKernel": 0,
}
# File, byte offset, kernel, host function.
Key = tuple[str, int, str, str]
Style = Literal["chevrons", "launch_ex", "launch_object"]


@dataclass
class Function:
    """A function or class of the framework and the names of its own that it mentions."""

    name: str
    file: str
    mentions: set[str] = field(default_factory=set)


@dataclass
class Seen:
    """Launches by site and kernel, and what mentions what."""

    launches: dict[Key, Launch] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    symbols: dict[Key, set[str]] = field(default_factory=dict)


def launches(found: Sequence[Found], own: OwnFiles) -> Seen:
    """Read the bodies of all own functions and classes of a unit.

    A site in a macro body is one launch for each host function that uses the macro, however often it
    does; the instantiations are those that the syntax tree holds for that function.
    """
    walk = _Walk(own)
    for entry in found:
        for cursor in entry.cursors:
            for function in _functions(cursor):
                walk.function(function)
    _resolve_parameters(walk)
    names = {key: symbols for key, symbols in walk.seen.symbols.items() if symbols}
    flat = sorted({symbol for symbols in names.values() for symbol in symbols})
    spelled = dict(zip(flat, demangle(flat), strict=True))
    for key, symbols in names.items():
        ids = {template_id(spelled[symbol], key[2].split("::")[-1]) for symbol in symbols}
        known = tuple(sorted(one for one in ids if one))
        walk.seen.launches[key] = walk.seen.launches[key].model_copy(update={"instantiations": known})
    return walk.seen


def _resolve_parameters(walk: _Walk) -> None:
    """A launch of a parameter becomes one launch for each kernel that some call passes to its function."""
    for key, launch in list(walk.seen.launches.items()):
        given = walk.passed.get(launch.host_function, {}) if launch.kernel == launch.callee else {}
        for kernel, symbols in given.items():
            resolved = (key[0], key[1], kernel, key[3])
            walk.seen.launches[resolved] = launch.model_copy(update={"kernel": kernel})
            walk.seen.symbols.setdefault(resolved, set()).update(symbols)
        if given:
            del walk.seen.launches[key]
            walk.seen.symbols.pop(key, None)


def _functions(cursor: Any) -> Iterator[Any]:
    if cursor.kind in FUNCTIONS or cursor.kind in CLASSES or cursor.kind == CursorKind.VAR_DECL:
        yield cursor
    if cursor.kind in CLASSES:
        for child in cursor.get_children():
            if child.kind in FUNCTIONS or child.kind in CLASSES:
                yield from _functions(child)


class _Walk:
    def __init__(self, own: OwnFiles) -> None:
        self.seen = Seen()
        self.passed: dict[str, dict[str, set[str]]] = {}
        self._own = own
        self._files: dict[str, FileSites] = {}
        self._kernel: dict[int, bool] = {}
        self._names: dict[int, str | None] = {}

    def function(self, cursor: Any) -> None:
        file = self._own.relative(cursor.location.file.name if cursor.location.file else None)
        if file is None:
            return
        here = Function(qualified_name(cursor), file)
        self.seen.functions.append(here)
        self._body(cursor, cursor, here)

    def _body(self, cursor: Any, function: Any, here: Function) -> None:
        for child in cursor.get_children():
            kind = child.kind
            if kind in _MENTIONS:
                self._mention(child, here)
            elif kind == CursorKind.CALL_EXPR:
                self._call(child, function, here)
            if kind in FUNCTIONS and cursor.kind in CLASSES:
                here.mentions.add(qualified_name(child))
                continue  # a method is read as a function of its own
            self._body(child, function, here)

    def _mention(self, reference: Any, here: Function) -> None:
        for target in candidates(reference):
            name = self._own_name(target)
            if name is not None and name != here.name:
                here.mentions.add(name)

    def _own_name(self, target: Any) -> str | None:
        key = target.hash
        if key not in self._names:
            kind = target.kind
            named = kind in FUNCTIONS or kind in CLASSES or kind == CursorKind.VAR_DECL
            place = target.location.file if named else None
            local = kind == CursorKind.VAR_DECL and target.semantic_parent.kind in FUNCTIONS
            own = place is not None and not local and self._own.relative(place.name) is not None
            self._names[key] = qualified_name(target) if own else None
        return self._names[key]

    def _is_kernel(self, target: Any) -> bool:
        key = target.hash
        if key not in self._kernel:
            self._kernel[key] = is_kernel(target)
        return self._kernel[key]

    def _call(self, call: Any, function: Any, here: Function) -> None:
        children = list(call.get_children())
        if len(children) > 1 and children[1].spelling == "__cudaPushCallConfiguration":
            self._chevrons(children, function, here)
            return
        if len(children) < 2:
            return
        name = call.spelling or _first_name(children[0])
        if name in _RUNTIME:
            at = _RUNTIME[name] + 1
            if len(children) > at:
                place = spelling_location(call.extent.start)
                self._record("launch_ex", children[at], place.file, place.offset, function, here)
        elif _is_object(children[0]):
            place = spelling_location(call.extent.start)
            self._record("launch_object", children[1], place.file, place.offset, function, here)
        else:
            self._passed(children, function)

    def _passed(self, children: list[Any], function: Any) -> None:
        """Remember the kernels that are given to own functions: such a one may launch its parameter."""
        called = [name for target in candidates(_reference(children[0])) if (name := self._own_name(target))]
        for argument in children[1:] if called else ():
            reference = _reference(argument)
            if reference.kind in _REFERENCES:
                search = _KernelSearch(function, self._is_kernel, self._own_name)
                for kernel, symbols in search.below(reference).items():
                    for name in called:
                        self.passed.setdefault(name, {}).setdefault(kernel, set()).update(symbols)

    def _chevrons(self, children: list[Any], function: Any, here: Function) -> None:
        place = spelling_location(children[1].extent.start)
        self._record("chevrons", children[0], place.file, place.offset, function, here)

    def _record(self, style: Style, callee: Any, file: str | None, offset: int, function: Any, here: Function) -> None:
        relative = self._own.relative(file)
        if relative is None:
            return
        kernels = _KernelSearch(function, self._is_kernel, self._own_name).below(callee)
        if not kernels and style == "launch_object":
            return
        site = self._site(style, relative, offset, function)
        if site is None:
            return
        for name, symbols in (kernels or {site.callee: set()}).items():
            key = (relative, offset, name, here.name)
            self.seen.symbols.setdefault(key, set()).update(symbols)
            if key not in self.seen.launches:
                self.seen.launches[key] = site.model_copy(update={"kernel": name, "host_function": here.name})

    def _site(self, style: Style, relative: str, offset: int, function: Any) -> Launch | None:
        if relative not in self._files:
            self._files[relative] = FileSites((self._own.root / relative).read_bytes())
        text = self._files[relative]
        launch = Launch(
            kernel="",
            host_function="",
            file=relative,
            offset=offset,
            line=text.line(offset),
            style=style,
            grid="",
            block="",
            macro=text.macro(offset),
        )
        if style == "chevrons":
            site = text.chevrons(offset)
            return None if site is None else launch.model_copy(update=vars(site))
        groups = text.call(offset)
        if not groups:
            return launch
        if style == "launch_object":
            geometry = [*groups[0], "", "", ""]
            return launch.model_copy(
                update={
                    "grid": geometry[0],
                    "block": geometry[1],
                    "stream": geometry[2] or "0",
                    "shared_bytes": geometry[3] or "0",
                    "arguments": tuple(groups[-1][1:]),
                    "callee": groups[-1][0] if groups[-1] else "",
                }
            )
        start = spelling_location(function.extent.start)
        begin = start.offset if self._own.relative(start.file) == relative and start.offset < offset else 0
        return launch.model_copy(update=_runtime_site(text, groups[0], begin, offset))


def _runtime_site(text: FileSites, words: list[str], begin: int, offset: int) -> dict[str, object]:
    """Geometry of a runtime call: from the configuration's members, or from the call's own arguments."""
    # cudaLaunchKernel(kernel, grid, block, arguments, shared, stream); the other begins with &configuration.
    if len(words) > 4 and not words[0].startswith("&"):
        padded = [*words, "", ""]
        return {
            "callee": words[0],
            "grid": words[1],
            "block": words[2],
            "arguments": (words[3],),
            "shared_bytes": padded[4] or "0",
            "stream": padded[5] or "0",
        }
    return {
        "callee": words[1] if len(words) > 1 else "",
        "grid": text.assigned(begin, offset, "gridDim"),
        "block": text.assigned(begin, offset, "blockDim"),
        "shared_bytes": text.assigned(begin, offset, "dynamicSmemBytes") or "0",
        "stream": text.assigned(begin, offset, "stream") or "0",
        "arguments": tuple(words[2:]),
    }


def _first_name(cursor: Any) -> str:
    """Name of the first function reference in a dependent callee."""
    if cursor.kind in _REFERENCES and cursor.spelling:
        return str(cursor.spelling)
    return next((name for child in cursor.get_children() if (name := _first_name(child))), "")


def _reference(cursor: Any) -> Any:
    """What an expression refers to, without the casts and conversions around it."""
    while cursor.kind not in _VALUES:
        children = list(cursor.get_children())
        if len(children) != 1:
            break
        cursor = children[0]
    return cursor


def _is_object(callee: Any) -> bool:
    """Whether what is called is an object made on the spot (``Launcher(grid, block)(kernel, …)``)."""
    while callee.kind == CursorKind.UNEXPOSED_EXPR:
        children = list(callee.get_children())
        if not children:
            return False
        callee = children[0]
    return bool(callee.kind == CursorKind.CALL_EXPR)


class _KernelSearch:
    """Kernels that an expression may name, followed through variables and functions that return a kernel."""

    def __init__(self, function: Any, is_kernel: Callable[[Any], bool], own_name: Callable[[Any], str | None]) -> None:
        self._function = function
        self._is_kernel = is_kernel
        self._own_name = own_name
        self._visited: set[int] = set()
        self._found: dict[str, set[str]] = {}

    def below(self, cursor: Any) -> dict[str, set[str]]:
        """Kernel name → mangled names of the instantiations that the expression spells."""
        self._look(cursor)
        return self._found

    def _look(self, cursor: Any) -> None:
        if cursor.kind in _VALUES:
            for target in candidates(cursor):
                self._target(target)
        for child in cursor.get_children():
            self._look(child)

    def _target(self, target: Any) -> None:
        if self._is_kernel(target):
            symbols = self._found.setdefault(qualified_name(target), set())
            if target.kind == CursorKind.FUNCTION_DECL and target.get_num_template_arguments() > 0:
                symbols.add(target.mangled_name)
            return
        if target.hash in self._visited:
            return
        self._visited.add(target.hash)
        if target.kind in _VARIABLES:
            for child in (*target.get_children(), *_assignments(self._function, target)):
                self._look(child)
        elif target.kind in FUNCTIONS and self._own_name(target) is not None:
            for cursor in (target.get_definition() or target).walk_preorder():
                if cursor.kind == CursorKind.RETURN_STMT:
                    self._look(cursor)


def _assignments(function: Any, variable: Any) -> Iterator[Any]:
    """Right sides of ``variable = …`` in a function."""
    for cursor in function.walk_preorder():
        if cursor.kind != CursorKind.BINARY_OPERATOR:
            continue
        sides = list(cursor.get_children())
        if len(sides) == 2 and sides[0].kind == CursorKind.DECL_REF_EXPR and sides[0].referenced == variable:
            yield sides[1]
