"""A function's syntax tree as plain data: what the passes need of libclang, with offsets that edits can use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from astra_integrate.extract.locations import spelling_location

_WRAPPERS = {"UNEXPOSED_EXPR", "PAREN_EXPR"}
INTEGERS = {"INT", "UINT", "LONG", "ULONG", "LONGLONG", "ULONGLONG"}
PLAIN = INTEGERS | {
    *("BOOL", "CHAR_U", "UCHAR", "CHAR_S", "SCHAR", "SHORT", "USHORT"),
    *("FLOAT", "DOUBLE", "HALF", "FLOAT16", "BFLOAT16"),
}
SIZED = PLAIN | {"RECORD", "ENUM", "VECTOR"}
_BINARY = {"BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR"}


@dataclass(frozen=True, eq=False)
class Node:
    """One cursor. ``start`` and ``end`` are byte offsets in the text that was read.

    ``kind`` is libclang's cursor kind, ``operator`` the operator as written (``+=``), ``type`` and
    ``canonical`` the type as spelled and without aliases, ``type_kind`` the kind of the latter
    (``DEPENDENT`` or ``UNEXPOSED`` where a template leaves it open). ``size`` is the type's size in
    bytes, for a pointer that of what it points to; None where open. ``place`` is the offset of the name
    in a declaration, ``refers`` the place of the declaration that a name leads to, if that is in the same
    text. ``in_macro``: it comes out of a macro, so the offsets are those of the macro's call.
    """

    kind: str
    name: str
    operator: str
    type: str
    canonical: str
    type_kind: str
    size: int | None
    start: int
    end: int
    place: int
    refers: int | None
    in_macro: bool
    children: tuple[Node, ...]

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, *kinds: str) -> Iterator[Node]:
        """Nodes of these kinds, this one included."""
        return (node for node in self.walk() if node.kind in kinds)

    @property
    def bare(self) -> Node:
        """The node below implicit casts and parentheses."""
        node = self
        while node.kind in _WRAPPERS and len(node.children) == 1:
            node = node.children[0]
        return node

    @property
    def initialiser(self) -> Node | None:
        """The expression that a variable's declaration ends with."""
        values = [child for child in self.children if not child.kind.endswith(("_REF", "_ATTR"))]
        return values[-1] if values else None

    @property
    def target(self) -> Node | None:
        """What an assignment, ``++`` or ``--`` changes."""
        changes = self.kind == "COMPOUND_ASSIGNMENT_OPERATOR" or self.operator in ("=", "++", "--")
        return self.children[0].bare if changes and self.children else None

    def uses(self, *declarations: int) -> bool:
        """Whether one of the declarations at these offsets is used below."""
        return any(node.refers in declarations for node in self.walk() if node.refers is not None)


def build(cursor: Any, file: str, shift: int, text: bytes) -> Node:
    """Copy ``cursor`` and all below it; ``shift`` is subtracted from the offsets in ``file``."""
    children = tuple(build(child, file, shift, text) for child in cursor.get_children())
    kind, operator = cursor.kind.name, ""
    start, end = cursor.extent.start.offset - shift, cursor.extent.end.offset - shift
    symbol = _overloaded(children) if kind == "CALL_EXPR" else ""
    if symbol:
        # An overloaded operator reads as the operator it is written as.
        children = (children[0], *children[2:])
        assigns = symbol.endswith("=") and symbol not in ("=", "==", "!=", "<=", ">=")
        binary = "COMPOUND_ASSIGNMENT_OPERATOR" if assigns else "BINARY_OPERATOR"
        kind, operator = ("UNARY_OPERATOR" if len(children) == 1 else binary), symbol
    canonical = cursor.type.get_canonical()
    return Node(
        kind=kind,
        name=cursor.spelling,
        operator=operator or _operator(cursor, kind, start, end, children, text),
        type=cursor.type.spelling,
        canonical=canonical.spelling,
        type_kind=canonical.kind.name,
        size=_size(canonical),
        start=start,
        end=end,
        place=cursor.location.offset - shift,
        refers=_refers(cursor, file, shift),
        in_macro=_from_macro(cursor.extent.start, file) and _from_macro(cursor.extent.end, file),
        children=children,
    )


def _overloaded(children: tuple[Node, ...]) -> str:
    """The symbol of an overloaded operator that a call is written with: its operands stand around it."""
    if len(children) not in (2, 3):
        return ""
    names = [node.name for node in children[1].walk() if node.name.startswith("operator")]
    symbol = names[-1][len("operator") :] if names and not any(children[1].find("CALL_EXPR")) else ""
    return symbol if symbol and not symbol[0].isalnum() and symbol not in ("()", "[]", "->", ",") else ""


def _operator(cursor: Any, kind: str, start: int, end: int, children: tuple[Node, ...], text: bytes) -> str:
    if kind in _BINARY:
        return str(cursor.spelling)
    if kind == "UNARY_OPERATOR" and children:
        before, after = text[start : children[0].start], text[children[0].end : end]
        return (before.strip() or after.strip()).decode("utf-8", "replace")
    return ""


def _refers(cursor: Any, file: str, shift: int) -> int | None:
    if not cursor.kind.is_expression() and cursor.kind.name not in ("TEMPLATE_REF", "TYPE_REF"):
        return None
    referenced = cursor.referenced
    if referenced is None or referenced.kind.name == "OVERLOADED_DECL_REF" or referenced.location.file is None:
        return None
    if referenced.location.file.name != file:
        return None
    return int(referenced.location.offset) - shift


def _from_macro(location: Any, file: str) -> bool:
    spelled = spelling_location(location)
    return spelled.file != file or spelled.offset != location.offset


def _size(canonical: Any) -> int | None:
    measured = canonical.get_pointee().get_canonical() if canonical.kind.name == "POINTER" else canonical
    # libclang dies when it is asked for the size of a placeholder type (an overload set, a CUDA built-in's field).
    if measured.kind.name not in SIZED:
        return None
    size = int(measured.get_size())
    return size if size > 0 else None
