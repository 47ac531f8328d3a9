"""Read the device code of a slice: its functions as trees, and where each declaration stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from astra_integrate.agents.models.rules.tree import Node, build
from astra_integrate.extract.lexing import blank
from astra_integrate.extract.parsing import parse
from astra_integrate.extract.render import Rendered, device_text
from astra_integrate.records import Slice

_FILE = "slice.cu"
_FUNCTIONS = {"FUNCTION_DECL", "FUNCTION_TEMPLATE", "CXX_METHOD"}
_CONTAINERS = {
    "NAMESPACE",
    "LINKAGE_SPEC",
    "STRUCT_DECL",
    "CLASS_DECL",
    "CLASS_TEMPLATE",
    "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION",
}
CACHED_LOADS = ("__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv")
# A macro that only loads what its argument points to, as frameworks have for __ldg.
_LOAD_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)\((?P<arg>\w+)\)[ \t]*"
    r"(?:__ld(?:g|cg|ca|cs|lu|cv)\(\s*(?P=arg)\s*\)|\(?\*\s*\(?\s*(?P=arg)\s*\)?\)?)[ \t]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, eq=False)
class Function:
    """A device function with a body. ``declaration`` is the id of the slice declaration that holds it."""

    declaration: str
    name: str
    qualified: str
    is_kernel: bool
    start: int
    parameters: tuple[Node, ...]
    template_types: tuple[str, ...]
    body: Node

    @cached_property
    def variables(self) -> dict[int, Node]:
        """Parameters and variables by the place of their name."""
        return {node.place: node for node in (*self.parameters, *self.body.find("VAR_DECL"))}

    @cached_property
    def changed(self) -> frozenset[int]:
        """Places of the variables that are set anywhere but in their declaration, or whose address is taken."""
        targets = [node.target for node in self.body.walk() if node.target is not None]
        targets += [n.children[0].bare for n in self.body.find("UNARY_OPERATOR") if n.operator == "&" and n.children]
        return frozenset(target.refers for target in targets if target.refers is not None)


@dataclass(frozen=True, eq=False)
class Reading:
    """The text, its functions in order, and the spans of the slice's declarations (bytes).

    ``loads`` are the names of intrinsics and macros that load what their one argument points to.
    """

    text: bytes
    functions: tuple[Function, ...]
    rendered: Rendered
    loads: frozenset[str]
    errors: tuple[str, ...]

    def at(self, node: Node) -> str:
        """The source text of ``node``."""
        return self.between(node.start, node.end)

    def between(self, start: int, end: int) -> str:
        """The source text from byte ``start`` to byte ``end``."""
        return self.text[start:end].decode("utf-8", "surrogateescape")

    def line(self, offset: int, function: Function) -> int:
        """Line of ``offset`` within the declaration that holds ``function``, counted from 1."""
        return self.text[self.rendered.span(function.declaration).start : offset].count(b"\n") + 1

    def named(self, name: str) -> tuple[Function, ...]:
        """Functions of that name, all overloads."""
        return tuple(function for function in self.functions if function.name == name)


def read(slice: Slice, arguments: Sequence[str]) -> Reading:
    """Parse the slice's device text with libclang.

    Args:
        slice: the slice; declarations may have new texts already.
        arguments: what clang needs (``extract.parsing.clang_arguments``).

    Parse errors don't raise: a function that libclang could not read in full simply matches less.
    """
    rendered = device_text(slice)
    text = rendered.text
    prefix, loads = "", set(CACHED_LOADS)
    for macro in _LOAD_MACRO.finditer(blank(text)):
        # Read as a function, its argument keeps its place in the file; out of a macro it would not.
        loads.add(macro["name"])
        prefix += f"template <typename T> __device__ T {macro['name']}(const T* address);\n"
        text = text[: macro.start()] + re.sub(r"[^\n]", " ", macro[0]) + text[macro.end() :]
    unit = parse(Path(_FILE), arguments, text=prefix + text, macros=False)
    shift = len(prefix)
    encoded = rendered.text.encode("utf-8", "surrogateescape")
    functions = tuple(
        function for cursor in _functions(unit.tu.cursor) if (function := _function(cursor, shift, encoded, rendered))
    )
    errors = tuple(f"{d.line}: {d.text}" for d in unit.diagnostics)
    return Reading(encoded, functions, rendered, frozenset(loads), errors)


def _functions(cursor: Any) -> list[Any]:
    found: list[Any] = []
    for child in cursor.get_children():
        if child.location.file is None or child.location.file.name != _FILE:
            continue
        if child.kind.name in _FUNCTIONS and child.is_definition():
            found.append(child)
        elif child.kind.name in _CONTAINERS:
            found += _functions(child)
    return found


def _function(cursor: Any, shift: int, text: bytes, rendered: Rendered) -> Function | None:
    kinds = {child.kind.name for child in cursor.get_children()}
    if not kinds & {"CUDAGLOBAL_ATTR", "CUDADEVICE_ATTR"} or "COMPOUND_STMT" not in kinds:
        return None
    place = cursor.location.offset - shift
    holder = next((span.id for span in rendered.spans if span.start <= place < span.end), None)
    if holder is None:
        return None
    nodes = [
        build(child, _FILE, shift, text)
        for child in cursor.get_children()
        if child.kind.name in ("PARM_DECL", "COMPOUND_STMT", "TEMPLATE_TYPE_PARAMETER")
    ]
    return Function(
        declaration=holder,
        name=cursor.spelling,
        qualified=_qualified(cursor),
        is_kernel="CUDAGLOBAL_ATTR" in kinds,
        start=place,
        parameters=tuple(node for node in nodes if node.kind == "PARM_DECL"),
        template_types=tuple(node.name for node in nodes if node.kind == "TEMPLATE_TYPE_PARAMETER"),
        body=next(node for node in nodes if node.kind == "COMPOUND_STMT"),
    )


def _qualified(cursor: Any) -> str:
    names: list[str] = []
    while cursor is not None and cursor.kind.name != "TRANSLATION_UNIT":
        names.append(cursor.spelling)
        cursor = cursor.semantic_parent
    return "::".join(name for name in reversed(names) if name and "(anonymous" not in name)
