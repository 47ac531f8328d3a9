"""Does a function work on packs already? Then its memory accesses are as wide as somebody wanted them."""

from __future__ import annotations

import re

from astra_integrate.agents.models.rules.accesses import PACK_BYTES, called
from astra_integrate.agents.models.rules.findings import NoMatch
from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.tree import Node

_CASTS = {"CXX_REINTERPRET_CAST_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR"}
_PACKED_CALL = re.compile(r"vec|pack|128|256|ldmatrix|cp_async", re.I)


def already_packed(function: Function, reading: Reading) -> NoMatch | None:
    """The reason to leave ``function`` alone where it accesses memory through packs, else None."""
    for node in function.body.walk():
        if node.kind in _CASTS and node.type_kind == "POINTER":
            width = _pack(node, function)
            if width is not None:
                return NoMatch(f"already vectorised: memory is accessed as {width}", node.start)
        if node.kind == "CALL_EXPR" and _PACKED_CALL.search(_callee(node, reading)) and _takes_address(node, reading):
            return NoMatch(f"already vectorised: memory is accessed by {called(node, reading)}", node.start)
    return None


def _callee(call: Node, reading: Reading) -> str:
    """The function with its template arguments: it may be these that name the pack."""
    return reading.at(call.children[0]) if call.children else ""


def _takes_address(call: Node, reading: Reading) -> bool:
    return any(argument.type_kind == "POINTER" or "&" in reading.at(argument) for argument in call.children[1:])


def _pack(cast: Node, function: Function) -> str | None:
    """Name and width of what a pointer is cast to, where that is more than one element."""
    pointee = re.sub(r"\b(?:const|volatile|__restrict(?:__)?)\b|\*\s*$", "", cast.type).replace("*", "").strip()
    if pointee in function.template_types or re.sub(r"\bunsigned |\bsigned ", "", pointee) in ("char", "int", "void"):
        return None
    if cast.size is None:
        return None if pointee == "void" else f"{pointee} (packs)"
    if cast.size >= PACK_BYTES:
        return f"{pointee}: loads are {cast.size * 8} bit wide"
    # Two or four elements side by side have a struct's name (half2, float2, uchar4) …
    if re.search(r"[24]$", pointee) or re.search(r"[24]$", cast.canonical.rstrip(" *")):
        return f"{pointee}: loads are {cast.size * 8} bit wide"
    return None
