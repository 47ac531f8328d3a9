"""Vectorised memory access: loops that move one element per thread move 16 bytes per thread instead."""

from __future__ import annotations

from collections import defaultdict

from astra_integrate.agents.models.rules.accesses import PACK_BYTES, accesses
from astra_integrate.agents.models.rules.emitting import Widened, rewrite
from astra_integrate.agents.models.rules.findings import Finding, NoMatch, Proposal
from astra_integrate.agents.models.rules.launch import plan_for
from astra_integrate.agents.models.rules.loops import ThreadLoop, thread_loops
from astra_integrate.agents.models.rules.packs import already_packed
from astra_integrate.agents.models.rules.reading import Function, Reading
from astra_integrate.agents.models.rules.rewriting import Change, apply
from astra_integrate.agents.models.rules.safety import check
from astra_integrate.records import Replacement

STRATEGY = "vectorised memory access"


def vectorise(reading: Reading) -> Proposal:
    """Widen every loop that matches; each one that doesn't is declined with its reason.

    The result computes the same values: a guard in the kernel sends rows that don't start on a 16-byte
    boundary to the scalar loop, which also takes what the packs leave over. Only sums that a thread
    carries through the loop are added up in another order.
    """
    changes: dict[str, list[Change]] = defaultdict(list)
    widened: dict[Function, list[Widened]] = {}
    told: list[str] = []
    declined: list[Finding] = []
    for function in reading.functions:
        try:
            loops = _matching(function, reading, declined)
        except NoMatch as reason:
            declined.append(_finding(function, reason, reading))
            continue
        if not loops:
            continue
        widened[function] = loops
        changes[function.declaration] += rewrite(loops, function, reading)
        told += [_told(loop, function) for loop in loops]
    plan, about = plan_for(widened, reading)
    return Proposal(
        replaced=tuple(
            Replacement(declaration=id, text=apply(reading.text, made, span.start, span.end))
            for id, made in changes.items()
            for span in (reading.rendered.span(id),)
        ),
        plan=plan,
        changes=(*told, *about),
        declined=tuple(declined),
        expected="fewer and wider memory instructions: 128 bits each where an element has 8 to 64" if told else "",
    )


def _matching(function: Function, reading: Reading, declined: list[Finding]) -> list[Widened]:
    """The loops of ``function`` that can be widened; raises where the function as a whole is to be left alone."""
    packed = already_packed(function, reading)
    loops = thread_loops(function, reading)
    if packed is not None and (loops or function.is_kernel):
        raise packed
    if not loops and function.is_kernel:
        raise NoMatch("no loop in which threads stride over neighbouring elements", function.body.start)
    matching: list[Widened] = []
    for loop in loops:
        try:
            if isinstance(loop, NoMatch):
                raise loop
            found = accesses(loop, function, reading)
            if not found.walking:
                raise _no_array(loop, reading)
            widened = Widened(loop, found, check(loop, found, function, reading))
            if len(widened.elements) > 2:
                kinds = ", ".join(widened.elements)
                raise NoMatch(f"the loop's arrays have more than two element types: {kinds}", loop.statement.start)
            matching.append(widened)
        except NoMatch as reason:
            declined.append(_finding(function, reason, reading))
    return matching


def _no_array(loop: ThreadLoop, reading: Reading) -> NoMatch:
    """Why nothing walks with the index: most often it is split into a row and a column first."""
    split = (
        node
        for node in loop.body.find("BINARY_OPERATOR")
        if node.operator in ("/", "%", "*", "<<", ">>", "&") and any(c.bare.refers == loop.index for c in node.children)
    )
    how = next((f": it goes by {reading.at(node)}" for node in split), "")
    return NoMatch(f"no array is accessed at {loop.variable.name} itself{how}", loop.statement.start)


def _finding(function: Function, reason: NoMatch, reading: Reading) -> Finding:
    return Finding(function=function.name, line=reading.line(reason.offset, function), why=reason.why)


def _told(widened: Widened, function: Function) -> str:
    arrays = sorted({access.pointer for access in widened.found.walking})
    notes = "".join(f"; {note}" for note in widened.notes)
    return (
        f"{function.name}: the loop over {widened.loop.variable.name} accesses {', '.join(arrays)} {PACK_BYTES} bytes "
        f"at a time where they are aligned, and one element at a time for what is left{notes}"
    )
