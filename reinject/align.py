"""Continuation lines moved along with the bracket that they are aligned with, after names became longer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from astra_integrate.reinject.format import WIDTH, is_macro
from astra_integrate.reinject.rename import Token, tokens

_OPENERS, _CLOSERS = ("(", "[", "{"), (")", "]", "}")


def realigned(old: str, new: str) -> str:
    """``new`` (``old`` with other names, token for token) with its continuation lines aligned as they were.

    Lines that would get too long make their bracket's content start on a line of its own. Text whose
    tokens don't match is returned as it is.
    """
    before, after = tokens(old), tokens(new)
    if old == new or len(before) != len(after) or "\n" not in old:
        return new
    groups = _groups(before)
    limit = max(WIDTH, *(len(line.rstrip(" \t\r\\")) for line in old.split("\n"))) - (2 if is_macro(old) else 0)
    broken: set[int] = set()
    while True:
        text, too_long = _render(after, groups, broken, limit, is_macro(new))
        # Only a bracket that a longer name has moved is laid out anew.
        more = {g for g in too_long if _moved(before, after, g)} - broken
        if not more:
            return text
        broken.add(min(more))


def _groups(before: Sequence[Token]) -> dict[int, int]:
    """Token that breaks a line → the opening bracket whose content the next line is aligned with."""
    groups: dict[int, int] = {}
    stack: list[tuple[int, int]] = []
    column = 0
    for place, token in enumerate(before):
        column = _column(column, token.text)
        if token.text in _OPENERS:
            stack.append((place, column))
        elif token.text in _CLOSERS and stack:
            stack.pop()
        elif "\n" in token.text and token.kind == "space" and stack:
            opening, inside = stack[-1]
            if column == inside and "\n" not in before[opening + 1].text:
                groups[place] = opening
    return groups


def _render(
    after: Sequence[Token], groups: dict[int, int], broken: Collection[int], limit: int, macro: bool
) -> tuple[str, set[int]]:
    """The text with the brackets of ``broken`` opened to a new line, and the groups that have too long a line."""
    pieces: list[str] = []
    inside: dict[int, int] = {}
    too_long: set[int] = set()
    column, indent, active = 0, 0, -1
    wanted = set(groups.values())
    for place, token in enumerate(after):
        text = token.text
        if place in groups:
            active = groups[place]
            text = text[: text.rfind("\n") + 1] + " " * inside[active]
        elif "\n" in text:
            active = -1
        elif token.kind == "space" and place - 1 in broken:
            text = ""
        column = _column(column, text)
        if "\n" in text:
            indent = column
        pieces.append(text)
        if place in wanted:
            if place in broken:
                inside[place] = indent + 4
                pieces.append((" \\\n" if macro else "\n") + " " * (indent + 4))
                column = indent + 4
            else:
                inside[place] = column
                active = place
        if column > limit and active >= 0 and token.kind not in ("space", "comment"):
            too_long.add(active)
    return "".join(pieces), too_long


def _moved(before: Sequence[Token], after: Sequence[Token], opening: int) -> bool:
    """Whether the bracket stands in another column of its line than before."""
    return _place(before, opening) != _place(after, opening)


def _place(code: Sequence[Token], place: int) -> int:
    column = 0
    for token in code[: place + 1]:
        column = _column(column, token.text)
    return column


def _column(column: int, text: str) -> int:
    return len(text) - text.rfind("\n") - 1 if "\n" in text else column + len(text)
