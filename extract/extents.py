"""From a syntax tree's idea of where a declaration is to the bytes that one would cut out by hand.

The tree starts a declaration after leading attributes, ends it before its ``;``, and maps what a macro
makes to the macro's call. A cut must hold all of it, and never half of an ``#if``.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from astra_integrate.extract.lexing import blank, directive_lines

_OPENS = re.compile(r"#\s*if")
_CLOSES = re.compile(r"#\s*endif")


@dataclass
class FileText:
    """One file for cutting: its bytes, the same blanked, its macro calls and its directives.

    ``calls`` are the (start, end) of macro calls outside any other, sorted. ``stops`` are places
    that a declaration can't reach back over although no ``;`` or brace shows it: the end of a macro
    call that opens or closes a namespace, and the end of the declaration before.
    """

    data: bytes
    calls: list[tuple[int, int]] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    plain: str = field(init=False)
    directives: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        """Derive the texts to search in."""
        self.plain = blank(self.data.decode("latin-1"))
        self.directives = list(directive_lines(self.plain))

    def add_calls(self, calls: Iterable[tuple[int, int]]) -> None:
        """Remember macro calls, the outermost of nested ones only."""
        for start, end in sorted(calls, key=lambda call: (call[0], -call[1])):
            if not self.calls or start >= self.calls[-1][1]:
                self.calls.append((start, end))

    def call_at(self, offset: int) -> tuple[int, int] | None:
        """The macro call that holds the byte at ``offset``, if any."""
        index = bisect.bisect_right(self.calls, (offset, 1 << 62)) - 1
        if index >= 0 and self.calls[index][0] <= offset < self.calls[index][1]:
            return self.calls[index]
        return None


def cut(file: FileText, start: int, end: int, *, ends_in_macro: bool, is_function: bool = False) -> tuple[int, int]:
    """The bytes to cut for a declaration that the tree has from ``start`` to ``end``.

    Args:
        file: the file that spells it.
        start: byte offset of the first token, mapped to the file.
        end: byte offset after the last token, mapped to the file.
        ends_in_macro: the last token comes out of a macro; ``end`` is then somewhere at its call.
        is_function: a body's ``}`` ends it, no ``;`` belongs to it unless one has to.
    """
    call = file.call_at(start)
    if call is not None:
        start = call[0]
    call = file.call_at(end) if ends_in_macro else file.call_at(end - 1)
    if call is not None:
        end = max(end, call[1])
    start = _back(file, start)
    if not (is_function and file.plain[end - 1 : end] == "}"):
        semicolon = re.compile(r"\s*;").match(file.plain, end)
        if semicolon:
            end = semicolon.end()
    return _whole_conditionals(file, start, end)


def _back(file: FileText, start: int) -> int:
    """Reach back over attributes and macros to after the previous ``;``, brace, directive or stop."""
    index = bisect.bisect_right(file.stops, start) - 1
    floor = file.stops[index] if index >= 0 else 0
    place = bisect.bisect_left(file.directives, (start, 0)) - 1
    if place >= 0:
        floor = max(floor, file.directives[place][1])
    floor = max(floor, *(file.plain.rfind(mark, floor, start) + 1 for mark in ";{}"))
    while floor < start and file.plain[floor].isspace():
        floor += 1
    return floor


def _whole_conditionals(file: FileText, start: int, end: int) -> tuple[int, int]:
    """Widen a cut that holds an ``#else`` or ``#endif`` without its ``#if``, or the other way round."""
    first = bisect.bisect_left(file.directives, (start, 0))
    last = bisect.bisect_left(file.directives, (end, 0))
    depth = lowest = 0
    for line in file.directives[first:last]:
        text = file.plain[line[0] : line[1]]
        if _OPENS.match(text):
            depth += 1
        elif _CLOSES.match(text):
            depth -= 1
        elif re.match(r"#\s*el", text):
            lowest = min(lowest, depth - 1)
        lowest = min(lowest, depth)
    before = _enclosing(file, file.directives[:first][::-1], -lowest, _OPENS, _CLOSES)
    after = _enclosing(file, file.directives[last:], depth - lowest, _CLOSES, _OPENS)
    return (before[0] if before else start), (after[1] if after else end)


def _enclosing(
    file: FileText,
    lines: Sequence[tuple[int, int]],
    missing: int,
    wanted: re.Pattern[str],
    opposite: re.Pattern[str],
) -> tuple[int, int] | None:
    """The directive that makes up for ``missing`` unmatched ones, walking away from the cut."""
    for line in lines:
        if missing <= 0:
            break
        text = file.plain[line[0] : line[1]]
        missing += bool(opposite.match(text)) - bool(wanted.match(text))
        if missing == 0:
            return line
    return None


def conditions_around(file: FileText, offset: int) -> tuple[str, ...]:
    """The conditions of every ``#if`` (and its ``#elif``) that is open at ``offset``, outermost first."""
    stack: list[list[str]] = []
    for line in file.directives[: bisect.bisect_left(file.directives, (offset, 0))]:
        text = file.plain[line[0] : line[1]]
        if _OPENS.match(text):
            stack.append([text])
        elif _CLOSES.match(text) and stack:
            stack.pop()
        elif re.match(r"#\s*el", text) and stack:
            stack[-1].append(text)
    return tuple(text for branch in stack for text in branch)
