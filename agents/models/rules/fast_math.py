"""Fast math: float division and functions by the intrinsics of the special-function unit."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

from astra_integrate.agents.models.rules.accesses import called
from astra_integrate.agents.models.rules.findings import Finding, Proposal
from astra_integrate.agents.models.rules.reading import Reading
from astra_integrate.agents.models.rules.rewriting import Change, apply
from astra_integrate.agents.models.rules.tree import INTEGERS, Node
from astra_integrate.records import Replacement

STRATEGY = "fast math"
# Function → intrinsic. Errors and ranges: CUDA C++ Programming Guide, "Intrinsic Functions".
INTRINSICS = {
    "expf": "__expf",
    "exp": "__expf",
    "exp10f": "__exp10f",
    "logf": "__logf",
    "log": "__logf",
    "log2f": "__log2f",
    "log10f": "__log10f",
    "powf": "__powf",
    "pow": "__powf",
    "sinf": "__sinf",
    "sin": "__sinf",
    "cosf": "__cosf",
    "cos": "__cosf",
    "tanf": "__tanf",
}
DIVIDE = "__fdividef"


def fast_math(reading: Reading) -> Proposal:
    """Replace every division and function whose operands and result are float for certain.

    Where a template leaves the type open, or it is double, the place stays and is named. Results differ
    by a few units in the last place, and ``__fdividef`` gives 0 for divisors above 2**126: whether that
    is within bounds is for the gate to say.
    """
    changes: dict[str, list[Change]] = defaultdict(list)
    told: list[str] = []
    declined: list[Finding] = []
    for function in reading.functions:
        sites: Counter[str] = Counter()
        for node in function.body.walk():
            made, what, why = _site(node, reading)
            if why:
                line = reading.line(node.start, function)
                declined.append(Finding(function=function.name, line=line, why=why))
            elif made:
                changes[function.declaration] += made
                sites[what] += 1
        if sites:
            listed = ", ".join(f"{what}{f' ({count} times)' if count > 1 else ''}" for what, count in sites.items())
            told.append(f"{function.name}: {listed}")
    if not told and not declined and reading.functions:
        kernel = next((function for function in reading.functions if function.is_kernel), reading.functions[0])
        why = "no float division and no function with a fast form"
        declined.append(Finding(function=kernel.name, line=1, why=why))
    return Proposal(
        replaced=tuple(
            Replacement(declaration=id, text=apply(reading.text, made, span.start, span.end))
            for id, made in changes.items()
            for span in (reading.rendered.span(id),)
        ),
        changes=tuple(told),
        declined=tuple(declined),
        expected="fewer instructions: no slow paths for division and range reduction" if told else "",
    )


def _site(node: Node, reading: Reading) -> tuple[list[Change], str, str]:
    """(changes, what they do, "") for a site that is replaced, ([], "", why) for one that could have been."""
    if node.kind == "BINARY_OPERATOR" and node.operator == "/" and len(node.children) == 2:
        return _division(node, reading)
    if node.kind == "CALL_EXPR" and len(node.children) >= 2:
        name = called(node, reading)
        if name in INTRINSICS and node.children[0].bare.refers is None:
            return _call(node, name, reading)
    return [], "", ""


def _division(node: Node, reading: Reading) -> tuple[list[Change], str, str]:
    text = reading.at(node)
    if node.type_kind != "FLOAT":
        # With a whole number on either side it is most likely a division of those.
        counts = any(child.bare.type_kind in INTEGERS for child in node.children)
        open_type = node.type_kind in ("DEPENDENT", "UNEXPOSED") and not counts
        return [], "", f"the type of {text} depends on the template's" if open_type else ""
    left, right = node.children
    if node.in_macro or left.in_macro or right.in_macro:
        return [], "", f"{text} is spelled in a macro"
    if _is_power_of_two(right, reading):
        return [], "", ""  # the compiler multiplies
    open_, close = _inside(left), _inside(right)
    changes = [
        Change(left.start, open_.start, f"{DIVIDE}("),
        Change(open_.end, close.start, ", "),
        Change(close.end, right.end, ")"),
    ]
    return changes, f"/ → {DIVIDE}", ""


def _call(node: Node, name: str, reading: Reading) -> tuple[list[Change], str, str]:
    callee, text = node.children[0], reading.at(node)
    if node.type_kind != "FLOAT" or any(argument.type_kind != "FLOAT" for argument in node.children[1:]):
        open_type = node.type_kind in ("DEPENDENT", "UNEXPOSED")
        why = "depends on the template's" if open_type else f"is {node.type}"
        return [], "", f"the type of {text} {why}"
    if node.in_macro or callee.in_macro:
        return [], "", f"{text} is spelled in a macro"
    return [Change(callee.start, callee.end, INTRINSICS[name])], f"{name} → {INTRINSICS[name]}", ""


def _inside(node: Node) -> Node:
    """The operand without brackets around it: as an argument it needs none (a comma expression would)."""
    inner = node
    while inner.kind in ("PAREN_EXPR", "UNEXPOSED_EXPR") and len(inner.children) == 1:
        below = inner.children[0]
        if inner.kind == "PAREN_EXPR" and below.operator == ",":
            return inner
        inner = below
    return inner


def _is_power_of_two(node: Node, reading: Reading) -> bool:
    literal = node.bare
    if literal.kind not in ("FLOATING_LITERAL", "INTEGER_LITERAL"):
        return False
    match = re.fullmatch(r"(\d+\.?\d*(?:e[+-]?\d+)?)[fFlLuU]*", reading.at(literal))
    return match is not None and math.frexp(float(match[1]))[0] == 0.5
