"""Which template arguments a kernel runs with: read off the syntax tree, chosen where nothing says.

The tree of an *instantiated* function hangs below the reference to it. So walking from a host function
through what it calls gives concrete kernels even behind launcher templates and dispatch lambdas.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clang import cindex
from clang.cindex import CursorKind

from astra_integrate.extract.declarations import Found, OwnFiles
from astra_integrate.extract.demangle import demangle, template_id
from astra_integrate.extract.lexing import identifiers
from astra_integrate.extract.parsing import Unit
from astra_integrate.progress import step

_REFERENCES = {CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR, CursorKind.CALL_EXPR}
# An unexposed declaration is a variable template's instance: libclang has no kind for it.
_FOLLOWED = {
    CursorKind.FUNCTION_DECL,
    CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
    CursorKind.VAR_DECL,
    CursorKind.UNEXPOSED_DECL,
}
#: Tried in this order where the source doesn't say: what models run on, then the rest.
_TYPES = ("__nv_bfloat16", "__half", "float", "c10::BFloat16", "c10::Half")
_INTEGERS = (128, 8, 4, 1, 16, 32, 64, 256, 2, 512, 1024)
_MOST_CANDIDATES = 48
_MOST_CLASSES = 10
_MARK = "astra_instantiation_"
_PREFERENCE = (("BFloat16", "bfloat16"), ("Half", "half"), ("float",))


@dataclass(frozen=True)
class Instantiation:
    """A kernel with its arguments as C++ (``ns::kernel<args>``) and the declaration (id) that it comes from."""

    text: str
    declaration: str | None


def seen_from(roots: Iterable[Any], found: Sequence[Found], own: OwnFiles) -> tuple[Instantiation, ...]:
    """Kernels of ``found`` that the functions ``roots`` (cursors) reach, bfloat16 first."""
    kernels = {name for f in found if f.declaration.is_kernel for name in f.declaration.names}
    places = {(c.location.file.name, c.location.offset): f.declaration.id for f in found for c in f.cursors}
    references = _kernel_references(list(roots), kernels, own)
    texts = demangle([reference.mangled_name for reference in references])
    result: dict[str, Instantiation] = {}
    for reference, text in zip(references, texts, strict=True):
        # A kernel in extern "C" has its own name as symbol.
        spelled = template_id(text, reference.spelling)
        if spelled is not None:
            result.setdefault(spelled, Instantiation(spelled, places.get(_template_place(reference))))
    return in_order(result.values())


def in_order(instantiations: Iterable[Instantiation]) -> tuple[Instantiation, ...]:
    """Bfloat16 first, then half, float and the rest; within each as found."""

    def rank(instantiation: Instantiation) -> int:
        for index, words in enumerate(_PREFERENCE):
            if any(word in instantiation.text for word in words):
                return index
        return len(_PREFERENCE)

    return tuple(sorted(instantiations, key=rank))


def _template_place(reference: Any) -> tuple[str, int]:
    template = reference.specialized_template
    cursor = reference if template is None else template
    definition = cursor.get_definition()
    location = (cursor if definition is None else definition).location
    return location.file.name, location.offset


def _kernel_references(roots: list[Any], kernels: set[str], own: OwnFiles) -> list[Any]:
    """Cursors of concrete kernels (functions) below ``roots``, in the order of the source."""
    found: dict[str, Any] = {}
    visited: set[tuple[int, str]] = set()
    # Depth first in source order, so that the first launch comes first.
    waiting = list(reversed(roots))
    while waiting:
        cursor = waiting.pop()
        children = list(cursor.get_children())
        if cursor.kind in _REFERENCES:
            target = cursor.referenced
            if target is not None and target.kind in _FOLLOWED and _is_own(target, own):
                if target.spelling in kernels and target.kind == CursorKind.FUNCTION_DECL:
                    found.setdefault(target.mangled_name, target)
                else:
                    children += _body(target, visited)
        waiting += reversed(children)
    return list(found.values())


def _body(target: Any, visited: set[tuple[int, str]]) -> list[Any]:
    key = (target.hash, target.mangled_name)
    if key in visited:
        return []
    visited.add(key)
    # An instance holds its own instantiated body and is its own definition; a prototype has another.
    definition = None if target.is_definition() else target.get_definition()
    return [target if definition is None else definition]


def _is_own(cursor: Any, own: OwnFiles) -> bool:
    file = cursor.location.file
    return file is not None and own.relative(file.name) is not None


def choose_arguments(template: Found) -> tuple[str, ...]:
    """Template-ids of a class or function template with arguments that might fit, the likeliest first.

    Only parameters without a default get one. Which of them are valid, the parser has to say.
    """
    cursor = template.cursors[0]
    choices: list[tuple[str, ...]] = []
    for child in cursor.get_children():
        if child.kind == CursorKind.TEMPLATE_TYPE_PARAMETER:
            choice: tuple[str, ...] = _TYPES
        elif child.kind == CursorKind.TEMPLATE_NON_TYPE_PARAMETER:
            choice = _values(child.type)
        elif child.kind == CursorKind.TEMPLATE_TEMPLATE_PARAMETER:
            return ()
        else:
            continue
        if _has_default(child):
            break
        choices.append(choice)
    name = qualified_name(template)
    # Types that belong together are mostly equal: that comes before every mixture.
    texts = dict.fromkeys(
        f"{name}<{', '.join(arguments)}>" for arguments in itertools.islice(_diagonal(choices), _MOST_CANDIDATES)
    )
    return tuple(texts)


def _diagonal(choices: Sequence[Sequence[str]]) -> Iterable[tuple[str, ...]]:
    longest = max((len(choice) for choice in choices), default=1)
    for index in range(longest):
        yield tuple(choice[min(index, len(choice) - 1)] for choice in choices)
    yield from itertools.product(*choices)


def _values(type_: Any) -> tuple[str, ...]:
    canonical = type_.get_canonical()
    if canonical.kind == cindex.TypeKind.BOOL:
        return ("false", "true")
    if canonical.kind == cindex.TypeKind.ENUM:
        constants = [c for c in canonical.get_declaration().get_children() if c.kind == CursorKind.ENUM_CONSTANT_DECL]
        return tuple(f"({canonical.spelling}){constant.enum_value}" for constant in constants)
    return tuple(str(value) for value in _INTEGERS)


def _has_default(parameter: Any) -> bool:
    return any(token.spelling == "=" for token in parameter.get_tokens())


def qualified_name(found: Found) -> str:
    """The declaration's name with its namespaces (anonymous ones left out)."""
    declaration = found.declaration
    return "::".join([*(name for name in declaration.namespaces if name), declaration.names[0]])


def appended(expressions: Sequence[str]) -> str:
    """C++ lines, one each, that instantiate what the expressions name; to be appended to the unit."""
    lines = [f"[[maybe_unused]] static auto {_MARK}{index} = &{text};" for index, text in enumerate(expressions)]
    return "".join(f"\n{line}" for line in lines) + "\n"


def valid(tu: Any, path: str, first_line: int, count: int) -> set[int]:
    """Indices of the appended lines (``first_line`` of ``path`` on) that no error points at, itself or in its notes."""
    wrong: set[int] = set()
    for diagnostic in tu.diagnostics:
        if diagnostic.severity < cindex.Diagnostic.Error:
            continue
        for place in (diagnostic, *diagnostic.children):
            file = place.location.file
            if file is not None and file.name == path:
                wrong.add(place.location.line - first_line)
    return set(range(count)) - wrong


def appended_cursors(tu: Any) -> dict[int, Any]:
    """Index of an appended line → the variable that it made."""
    return {
        int(cursor.spelling.removeprefix(_MARK)): cursor
        for cursor in tu.cursor.get_children()
        if cursor.kind == CursorKind.VAR_DECL and cursor.spelling.startswith(_MARK)
    }


def chosen_for(
    found: Sequence[Found],
    chosen: Sequence[Found],
    own: OwnFiles,
    path: Path,
    parse: Callable[[str], Unit],
    method: str | None = None,
) -> tuple[tuple[Instantiation, ...], tuple[str, ...]]:
    """Arguments for kernels that no host code of the unit instantiates, and notes that say how.

    First the class templates that launch are given arguments, and the kernels are read off the bodies
    of their methods (of ``method`` alone where it is given); where that gives none, the kernel's own
    arguments are chosen. The parser says which of the choices are valid.

    Args:
        found: all own declarations of the unit.
        chosen: those of the slice.
        own: the framework's own files.
        path: the unit.
        parse: parses the unit with other content.
        method: the method of the launching class that is the op's host function.
    """
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    first_line = text.count("\n") + 2
    kernels = [f for f in chosen if f.declaration.is_kernel]
    spellings = {name for f in kernels for name in f.declaration.names}
    launching = [
        f
        for f in chosen
        if f.cursors[0].kind == CursorKind.CLASS_TEMPLATE and identifiers(f.declaration.text) & spellings
    ]
    attempts = (
        ("of the class that launches", [e for f in launching for e in _methods_of(f, method)]),
        ("of the kernel", [e for f in kernels if not _is_plain(f) for e in choose_arguments(f)]),
    )
    for what, expressions in attempts:
        if not expressions:
            continue
        with step(f"Choosing template arguments among {len(expressions)} sets"):
            tree = parse(text + appended(expressions))
        good = valid(tree.tu, str(path), first_line, len(expressions))
        variables = appended_cursors(tree.tu)
        seen = seen_from([variables[i] for i in sorted(good & variables.keys())], found, own)
        wanted = {f.declaration.id for f in kernels}
        seen = tuple(i for i in seen if i.declaration in wanted)
        if seen:
            first = expressions[min(good)]
            return seen, (f"instantiations: template arguments {what} were chosen, the source has none: {first} …",)
    plain = [Instantiation(qualified_name(f), f.declaration.id) for f in kernels if _is_plain(f)]
    if plain:
        return tuple(plain), ("instantiations: the kernels are no templates",)
    return (), ("instantiations: none could be found or chosen",)


def _methods_of(launching: Found, method: str | None) -> list[str]:
    methods = [
        child.spelling
        for child in launching.cursors[0].get_children()
        if child.kind == CursorKind.CXX_METHOD and method in (None, child.spelling)
    ]
    arguments = choose_arguments(launching)[:_MOST_CLASSES]
    return [f"{template}::{name}" for name in dict.fromkeys(methods) for template in arguments]


def _is_plain(kernel: Found) -> bool:
    return bool(kernel.cursors[0].kind == CursorKind.FUNCTION_DECL)
