"""The record of one kernel out of its declaration and cursor."""

from __future__ import annotations

from typing import Any, Literal

from clang.cindex import CursorKind, TypeKind

from astra_integrate.extract.body_hash import body_hash
from astra_integrate.extract.declarations import Found, is_global
from astra_integrate.extract.lexing import head
from astra_integrate.records import Kernel, Parameter, TemplateParameter

_TEMPLATE_KINDS: dict[Any, Literal["type", "value", "template"]] = {
    CursorKind.TEMPLATE_TYPE_PARAMETER: "type",
    CursorKind.TEMPLATE_NON_TYPE_PARAMETER: "value",
    CursorKind.TEMPLATE_TEMPLATE_PARAMETER: "template",
}


def kernel_record(found: Found, unit: str) -> Kernel:
    """The kernel that ``found`` declares, as seen in ``unit``."""
    declaration = found.declaration
    cursor = next(c for c in found.cursors if is_global(c))
    name = "::".join([*(n for n in declaration.namespaces if n), cursor.spelling])
    parameters = tuple(_parameter(child) for child in cursor.get_children() if child.kind == CursorKind.PARM_DECL)
    opening = head(declaration.text)
    return Kernel(
        name=name,
        extent=declaration.extent,
        parameters=parameters,
        template_parameters=tuple(
            TemplateParameter(
                name=child.spelling,
                kind=_TEMPLATE_KINDS[child.kind],
                type=child.type.spelling if child.kind == CursorKind.TEMPLATE_NON_TYPE_PARAMETER else "",
            )
            for child in cursor.get_children()
            if child.kind in _TEMPLATE_KINDS
        ),
        attributes=tuple(child.kind.name for child in cursor.get_children() if child.kind.is_attribute()),
        # A comment in the head may hold bytes that are no UTF-8; a record's JSON can't.
        signature=" ".join(opening.split()).encode("utf-8", "replace").decode("utf-8"),
        body_hash=body_hash(declaration.text),
        units=(unit,),
    )


def _parameter(cursor: Any) -> Parameter:
    return Parameter(name=cursor.spelling, type=cursor.type.spelling, direction=_direction(cursor.type))


def _direction(type_: Any) -> Literal["in", "inout", "value"]:
    """What the type allows: a pointer to const can only be read."""
    canonical = type_.get_canonical()
    if canonical.kind not in (TypeKind.POINTER, TypeKind.LVALUEREFERENCE):
        return "value"
    return "in" if canonical.get_pointee().is_const_qualified() else "inout"
