"""How the value at an address is used in a loop body: read, written, only sometimes, or out of sight."""

from __future__ import annotations

from dataclasses import dataclass

from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.tree import Node

_BRANCHES = {"IF_STMT", "WHILE_STMT", "DO_STMT", "FOR_STMT", "SWITCH_STMT", "CXX_FOR_RANGE_STMT", "LAMBDA_EXPR"}
_TRANSPARENT = {"UNEXPOSED_EXPR", "PAREN_EXPR"}
_READS = {"VAR_DECL", "DECL_STMT", "COMPOUND_STMT", "INIT_LIST_EXPR", "RETURN_STMT"}
_CASTS = {"CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_FUNCTIONAL_CAST_EXPR"}


@dataclass(frozen=True)
class Use:
    """``unknown`` says, as the end of a sentence, why it isn't known what happens to the value.

    ``variable`` is the name of the variable that the value is read into, if it is.
    """

    read: bool
    written: bool
    conditional: bool = False
    unknown: str = ""
    variable: str = ""


def use_of(node: Node, parents: tuple[Node, ...], body: Node, function: Function, reading: Reading) -> Use:
    """How ``node`` (an access within ``body``) is used; ``parents`` lead to it from the function's body or ``body``."""
    inside = parents[parents.index(body) :] if body in parents else parents
    conditional = _is_conditional(node, inside)
    if node.kind == "CALL_EXPR":  # a cached load gives a value
        return Use(True, False, conditional, variable=_variable(inside))
    converted = False
    child = node
    for parent in reversed(inside):
        if parent.kind in _TRANSPARENT:
            # A conversion (the load itself is one) makes a value of the place; what follows can't change it.
            converted = converted or parent.kind == "UNEXPOSED_EXPR"
            child = parent
            continue
        read, written, unknown = _in_parent(child, parent, converted or _is_const(node), function, reading)
        return Use(read, written, conditional, unknown, _variable(inside))
    return Use(True, False, conditional)


def _in_parent(child: Node, parent: Node, value: bool, function: Function, reading: Reading) -> tuple[bool, bool, str]:
    """(read, written, unknown) of ``child``, whose direct use is ``parent``; ``value``: it can't be changed."""
    if parent.kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR") and parent.operator.endswith("="):
        if parent.children[0] is child and parent.operator not in ("==", "<=", ">=", "!="):
            return parent.operator != "=", True, ""
        return True, False, ""
    if parent.kind == "UNARY_OPERATOR":
        if parent.operator == "&":
            return True, True, "has its address handed on"
        changes = parent.operator in ("++", "--")
        return True, changes, ""
    if parent.kind == "VAR_DECL" and "&" in parent.type and "const" not in parent.type:
        return True, True, "is bound to a reference through which it may change"
    if parent.kind == "CALL_EXPR":
        return _in_call(child, parent, value, function, reading)
    if parent.kind in ("BINARY_OPERATOR", "CONDITIONAL_OPERATOR") or parent.kind in _READS | _CASTS | _BRANCHES:
        return True, False, ""
    if value and parent.kind in ("MEMBER_REF_EXPR", "ARRAY_SUBSCRIPT_EXPR"):
        return True, False, ""
    return True, True, f"is used in a way that this pass doesn't know ({parent.kind.lower()})"


def _in_call(child: Node, call: Node, value: bool, function: Function, reading: Reading) -> tuple[bool, bool, str]:
    if value or call.children[0] is child or not takes_references(call, function, reading):
        return True, False, ""
    return True, True, f"may be changed by {reading.at(call.children[0])}"


def takes_references(call: Node, function: Function, reading: Reading) -> bool:
    """Whether the called function may change what it is given: it has, or may have, a non-const reference."""
    callee = call.children[0].bare
    signatures = [callee.type] if "(" in callee.type and "overloaded" not in callee.type else []
    name = reading.at(callee).split("<")[0].split("::")[-1].strip()
    if not signatures:
        signatures = [f"({', '.join(p.type for p in known.parameters)})" for known in reading.named(name)]
    if not signatures:
        return True
    parameters = [part for text in signatures for part in text[text.rindex("(") :].split(",")]
    return any("&" in part and "const" not in part for part in parameters)


def _is_conditional(node: Node, parents: tuple[Node, ...]) -> bool:
    child = node
    for parent in reversed(parents):
        if parent.kind in _BRANCHES and (parent.kind != "IF_STMT" or parent.children[0] is not child):
            return True
        if parent.kind == "CONDITIONAL_OPERATOR" and parent.children[0] is not child:
            return True
        if parent.kind == "BINARY_OPERATOR" and parent.operator in ("&&", "||") and parent.children[1] is child:
            return True
        child = parent
    return False


def _is_const(node: Node) -> bool:
    return node.type.startswith("const ")


def _variable(parents: tuple[Node, ...]) -> str:
    """Name of the variable that a declaration around the access makes, if it is that variable's whole value."""
    for parent in reversed(parents):
        if parent.kind == "VAR_DECL":
            return parent.name
        if parent.kind not in _TRANSPARENT | _CASTS:
            return ""
    return ""
