"""Launch sites and references of one parsed unit, found in the bodies of the framework's own functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clang.cindex import CursorKind

from astra_integrate.extract.cursors import CLASSES, FUNCTIONS, candidates, is_kernel, qualified_name
from astra_integrate.extract.declarations import Found, OwnFiles
from astra_integrate.extract.demangle import demangle, template_id
from astra_integrate.extract.kernel_search import REFERENCES, VALUES, KernelSearch
from astra_integrate.extract.locations import spelling_location
from astra_integrate.extract.sites import FileSites
from astra_integrate.records import Launch

_MENTIONS = REFERENCES | {CursorKind.MEMBER_REF_EXPR, CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF}
_RUNTIME = {
    "cudaLaunchKernelEx": 1,
    "cudaLaunchKernelExC": 1,
    "cudaLaunchKernel": 0,
    "cudaLaunchCooperativeKernel": 0,
}
# File, byte offset, kernel, host function.
Key = tuple[str, int, str, str]
_VALUES_AND_ALIASES = frozenset(
    {CursorKind.VAR_DECL, CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPE_ALIAS_TEMPLATE_DECL, CursorKind.TYPEDEF_DECL}
)
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


@dataclass
class Given:
    """Kernels that are passed as arguments: directly, and on by functions that pass their own parameters."""

    kernels: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    forwards: dict[str, set[str]] = field(default_factory=dict)

    def to(self, function: str) -> dict[str, set[str]]:
        """Kernel → mangled instantiations that may arrive at a parameter of ``function``."""
        found: dict[str, set[str]] = {}
        seen, ring = {function}, [function]
        while ring:
            name = ring.pop()
            for kernel, symbols in self.kernels.get(name, {}).items():
                found.setdefault(kernel, set()).update(symbols)
            new = self.forwards.get(name, set()) - seen
            seen |= new
            ring += new
        return found


def launches(found: Sequence[Found], own: OwnFiles) -> Seen:
    """Read the bodies of all own functions and classes of a unit.

    A site in a macro body is one launch for each host function that uses the macro, however often it
    does; the instantiations are those that the syntax tree holds for that function.
    """
    kernels = (cursor for entry in found if entry.declaration.is_kernel for cursor in entry.cursors)
    walk = _Walk(own, {cursor.spelling: qualified_name(cursor) for cursor in kernels if is_kernel(cursor)})
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
        given = {} if launch.kernel else walk.given.to(launch.host_function)
        for kernel, symbols in given.items():
            resolved = (key[0], key[1], kernel, key[3])
            walk.seen.launches[resolved] = launch.model_copy(update={"kernel": kernel})
            walk.seen.symbols.setdefault(resolved, set()).update(symbols)
        if given:
            del walk.seen.launches[key]
            walk.seen.symbols.pop(key, None)


def _functions(cursor: Any) -> Iterator[Any]:
    if cursor.kind in FUNCTIONS or cursor.kind in CLASSES or cursor.kind in _VALUES_AND_ALIASES:
        yield cursor
    if cursor.kind in CLASSES:
        for child in cursor.get_children():
            yield from _functions(child)


class _Walk:
    def __init__(self, own: OwnFiles, kernels: Mapping[str, str]) -> None:
        self._kernels = kernels
        self.seen = Seen()
        self.given = Given()
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
            if cursor.kind in CLASSES and (kind in FUNCTIONS or kind in CLASSES or kind in _VALUES_AND_ALIASES):
                here.mentions.add(qualified_name(child))
                continue  # a member is read on its own
            self._body(child, function, here)

    def _mention(self, reference: Any, here: Function) -> None:
        for target in candidates(reference):
            name = self.own_name(target)
            # A member that names its own class uses a part of it, and not all its members.
            if name is not None and name != here.name and not here.name.startswith(f"{name}::"):
                here.mentions.add(name)
            elif target.kind == CursorKind.UNEXPOSED_DECL:
                here.mentions.update(self.spelled_kernels(target))

    def spelled_kernels(self, declaration: Any) -> list[str]:
        """Kernels that a variable template's text names: libclang shows nothing of what is inside one."""
        place = spelling_location(declaration.location)
        relative = self._own.relative(place.file)
        if relative is None:
            return []
        words = self._file(relative).words(place.offset)
        return [self._kernels[word] for word in words if word in self._kernels]

    def own_name(self, target: Any) -> str | None:
        """Qualified name of a function, class or global variable of the framework; None for anything else."""
        key = target.hash
        if key not in self._names:
            kind = target.kind
            named = kind in FUNCTIONS or kind in CLASSES or kind in _VALUES_AND_ALIASES
            place = target.location.file if named else None
            local = kind in _VALUES_AND_ALIASES and target.semantic_parent.kind in FUNCTIONS
            own = place is not None and not local and self._own.relative(place.name) is not None
            self._names[key] = qualified_name(target) if own else None
        return self._names[key]

    def is_kernel(self, target: Any) -> bool:
        """Whether a declaration is a kernel (remembered)."""
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
            self._passed(children, here)

    def _passed(self, children: list[Any], here: Function) -> None:
        """Remember the kernels that are given to own functions and to local lambdas: such a one may launch them."""
        callees = list(candidates(_reference(children[0])))
        called = [name for target in callees if (name := self.own_name(target))]
        if not called and any(_is_local(target) for target in callees):
            called = [here.name]
        for argument in children[1:] if called else ():
            for target in candidates(_reference(argument)):
                if self.is_kernel(target):
                    symbols = {target.mangled_name} if target.kind == CursorKind.FUNCTION_DECL else set()
                    for name in called:
                        self.given.kernels.setdefault(name, {}).setdefault(qualified_name(target), set()).update(
                            symbols
                        )
                elif target.kind == CursorKind.PARM_DECL:
                    for name in called:
                        self.given.forwards.setdefault(name, set()).add(here.name)

    def _chevrons(self, children: list[Any], function: Any, here: Function) -> None:
        place = spelling_location(children[1].extent.start)
        self._record("chevrons", children[0], place.file, place.offset, function, here)

    def _record(self, style: Style, callee: Any, file: str | None, offset: int, function: Any, here: Function) -> None:
        relative = self._own.relative(file)
        if relative is None:
            return
        kernels = KernelSearch(function, self).below(callee)
        if not kernels and style == "launch_object":
            return
        site = self._site(style, relative, offset, function)
        if site is None:
            return
        for name, symbols in (kernels or {"": set()}).items():
            key = (relative, offset, name, here.name)
            self.seen.symbols.setdefault(key, set()).update(symbols)
            if key not in self.seen.launches:
                self.seen.launches[key] = site.model_copy(update={"kernel": name, "host_function": here.name})

    def _file(self, relative: str) -> FileSites:
        if relative not in self._files:
            self._files[relative] = FileSites((self._own.root / relative).read_bytes())
        return self._files[relative]

    def _site(self, style: Style, relative: str, offset: int, function: Any) -> Launch | None:
        text = self._file(relative)
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
    if cursor.kind in REFERENCES and cursor.spelling:
        return str(cursor.spelling)
    return next((name for child in cursor.get_children() if (name := _first_name(child))), "")


def _is_local(target: Any) -> bool:
    """Whether what is called is a local variable or the call operator of a lambda."""
    local = target.kind == CursorKind.VAR_DECL and target.semantic_parent.kind in FUNCTIONS
    return bool(local or (target.kind == CursorKind.CXX_METHOD and target.spelling == "operator()"))


def _reference(cursor: Any) -> Any:
    """What an expression refers to, without the casts and conversions around it."""
    while cursor.kind not in VALUES:
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
