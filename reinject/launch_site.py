"""A ``kernel<<<grid, block, shared, stream>>>(arguments)`` in source text, taken apart by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from astra_integrate.errors import BadInput
from astra_integrate.reinject.rename import Token, code_tokens

_OPENERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Piece:
    """Characters ``start`` to ``end`` of a text, and those characters on one line without continuations."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Site:
    """One launch. ``start`` is the callee's first character, ``end`` the one after the closing bracket.

    ``chevrons`` is the index of ``<<<``; ``name`` the callee's last identifier; ``semicolon`` whether a
    ``;`` follows; ``statement_end`` the index after it (``end`` where there is none).
    """

    start: int
    end: int
    chevrons: int
    name: Piece
    template_arguments: tuple[Piece, ...]
    configuration: tuple[Piece, ...]
    arguments: tuple[Piece, ...]
    semicolon: bool
    statement_end: int

    @property
    def grid(self) -> Piece:
        """The first expression in the chevrons."""
        return self.configuration[0]

    @property
    def block(self) -> Piece:
        """The second expression in the chevrons."""
        return self.configuration[1]


def sites(text: str) -> tuple[Site, ...]:
    """Every launch by ``<<<…>>>`` in ``text`` (C++ or a macro), in order.

    Raises :class:`BadInput` for one that can't be taken apart, with its line in ``text``.
    """
    code = _single_angles(code_tokens(text))
    return tuple(_site(text, code, place) for place, token in enumerate(code) if token.text == "<<<")


def _site(text: str, code: Sequence[Token], chevrons: int) -> Site:
    close = _closing_chevrons(code, chevrons)
    last = _matching(code, close + 1) if close is not None and code[close + 1].text == "(" else None
    callee = _callee(code, chevrons)
    if close is None or last is None or callee is None:
        line = text.count("\n", 0, code[chevrons].start) + 1
        raise BadInput(f"The launch in line {line} of {text.splitlines()[0]!r} can't be taken apart")
    first, name, template = callee
    configuration = _split(text, code, chevrons, close - 2)
    if len(configuration) < 2:
        raise BadInput(f"The launch of {code[name].text} gives no block size")
    semicolon = last + 1 < len(code) and code[last + 1].text == ";"
    return Site(
        start=code[first].start,
        end=code[last].end,
        chevrons=code[chevrons].start,
        name=Piece(code[name].start, code[name].end, code[name].text),
        template_arguments=_split(text, code, *template) if template else (),
        configuration=configuration,
        arguments=_split(text, code, close + 1, last),
        semicolon=semicolon,
        statement_end=code[last + 1].end if semicolon else code[last].end,
    )


def _single_angles(code: Sequence[Token]) -> list[Token]:
    """``>>>`` as three tokens: in ``k<A<B<int>>><<<…`` it closes template arguments, not a configuration."""
    single: list[Token] = []
    for token in code:
        parts = range(3) if token.text == ">>>" else ()
        single += [Token("mark", ">", token.start + place) for place in parts] or [token]
    return single


def _closing_chevrons(code: Sequence[Token], start: int) -> int | None:
    """The last ``>`` of the ``>>>`` that closes the ``<<<`` at ``start``; a ``(`` must follow."""
    depth = angles = 0
    for place in range(start + 1, len(code) - 1):
        text = code[place].text
        depth += (text in _OPENERS) - (text in _OPENERS.values())
        if depth == 0 and text == "<" and code[place - 1].kind == "word":
            angles += 1
        elif depth == 0 and text == ">" and angles:
            angles -= 1
        elif depth == 0 and text == ">" and _adjacent(code, place) and code[place + 1].text == "(":
            return place
    return None


def _adjacent(code: Sequence[Token], place: int) -> bool:
    """Whether the token and the two before it are ``>>>``."""
    return place >= 2 and all(
        code[place - back].text == ">" and code[place - back].start == code[place].start - back for back in (1, 2)
    )


def _matching(code: Sequence[Token], start: int) -> int | None:
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place].text in _OPENERS) - (code[place].text in _OPENERS.values())
        if depth == 0:
            return place
    return None


def _callee(code: Sequence[Token], chevrons: int) -> tuple[int, int, tuple[int, int] | None] | None:
    """First token, name token and template brackets of what is launched: ``ns::kernel<args>``."""
    place = chevrons - 1
    template = None
    if place >= 0 and code[place].text == ">":
        opening = _opening_angle(code, place)
        if opening is None:
            return None
        template, place = (opening, place), opening - 1
    if place < 0 or code[place].kind != "word":
        return None
    name = first = place
    while first >= 1 and code[first - 1].text == "::":
        first -= 1
        if first >= 1 and code[first - 1].kind == "word":
            first -= 1
    return first, name, template


def _opening_angle(code: Sequence[Token], close: int) -> int | None:
    angles = rounds = 0
    for place in range(close, -1, -1):
        text = code[place].text
        rounds += (text == ")") - (text == "(")
        if rounds == 0:
            angles += (text == ">") - (text == "<")
            if angles == 0:
                return place
        if rounds < 0:
            return None
    return None


def _split(text: str, code: Sequence[Token], opening: int, closing: int) -> tuple[Piece, ...]:
    """The comma-separated pieces between two bracket tokens."""
    cuts, depth, angles = [opening], 0, 0
    for place in range(opening + 1, closing):
        token = code[place].text
        depth += (token in _OPENERS) - (token in _OPENERS.values())
        if depth == 0:
            # A "<" right after a name opens template arguments; elsewhere it compares.
            angles += token == "<" and code[place - 1].kind == "word"
            angles -= token == ">" and angles > 0
        if token == "," and depth == 0 and angles == 0:
            cuts.append(place)
    cuts.append(closing)
    return tuple(
        Piece(code[a + 1].start, code[b - 1].end, _one_line(text, code[a + 1 : b]))
        for a, b in pairwise(cuts)
        if b > a + 1
    )


def _one_line(text: str, code: Sequence[Token]) -> str:
    """The tokens with single spaces where the text has any, continuations and comments left out."""
    pieces = [code[0].text]
    for before, token in pairwise(code):
        gap = text[before.end : token.start]
        pieces.append((" " if gap else "") + token.text)
    return "".join(pieces)
