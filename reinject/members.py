"""Functions of a class that is an op's host code: which one is the op's, and how to lead it alone elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from astra_integrate.errors import BadInput
from astra_integrate.extract.lexing import blank, split_list
from astra_integrate.records import Declaration
from astra_integrate.reinject.rename import Token, code_tokens
from astra_integrate.reinject.signature import named, template_parameters

_CLOSERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Member:
    """A member of a class: characters ``start`` to ``end`` of its text; ``body`` is inside the braces of a function.

    ``name`` is that of a function, or "" for anything else.
    """

    start: int
    end: int
    words: frozenset[str]
    name: str = ""
    parameters: tuple[str, ...] = ()
    is_static: bool = False
    is_template: bool = False
    body: tuple[int, int] | None = None


def members(text: str) -> tuple[Member, ...]:
    """The members of the class that ``text`` defines, in order; empty where it defines none."""
    code = code_tokens(text)
    opening = next((n for n, token in enumerate(code) if token.text == "{"), None)
    if opening is None or not {"struct", "class"} & {token.text for token in code[:opening]}:
        return ()
    found: list[Member] = []
    first, place = opening + 1, opening + 1
    while place < len(code) and code[place].text != "}":
        token = code[place].text
        if token == ":" and code[place - 1].text in ("public", "private", "protected"):
            first = place + 1
        elif token == ";":
            found.append(_member(text, code[first : place + 1]))
            first = place + 1
        elif token in _CLOSERS:
            place = _closing(code, place)
            if token == "{" and place < len(code) and _parameters(code[first:place]) is not None:
                found.append(_member(text, code[first : place + 1]))
                first = place + 1
        place += 1
    return tuple(found)


def entries(text: str, function: str) -> tuple[str, ...]:
    """Static functions of the class that ``function`` doesn't lead to: ways in for other ops."""
    every = members(text)
    reached = {function}
    while True:
        more = {m.name for m in every if m.name} & {w for m in every if _owns(m, reached) for w in m.words}
        # A member variable or alias that is reached leads on to what it mentions.
        more |= {w for m in every if not m.name and m.words & reached for w in m.words}
        if more <= reached:
            break
        reached |= more
    return tuple(dict.fromkeys(m.name for m in every if m.is_static and m.body and m.name not in reached))


def led_to(declaration: Declaration, function: str, other: str) -> str:
    """The class's text with the body of ``function`` a call of the same function of the class ``other``.

    Raises :class:`BadInput` for a function that isn't static, is a template or is overloaded.
    """
    text = declaration.text
    own = [m for m in members(text) if m.name == function and m.body]
    if len(own) != 1 or own[0].body is None or not own[0].is_static or own[0].is_template:
        raise BadInput(
            f"{declaration.names[0]}::{function} can't be led elsewhere: it is not one plain static function"
        )
    start, end = own[0].body
    arguments = [_argument(parameter) for parameter in template_parameters(blank(text))]
    scope = f"{other}<{', '.join(arguments)}>" if arguments else other
    line = text[text.rfind("\n", 0, own[0].start) + 1 : own[0].start]
    indent = line if line.isspace() else ""
    call = f"return {scope}::{function}({', '.join(own[0].parameters)});"
    return f"{text[:start]}\n{indent}  {call}\n{indent}{text[end:]}"


def changed_members(old: str, new: str) -> frozenset[str] | None:
    """Names of the functions that differ between two texts of a class; None where something else differs."""
    before, after = members(old), members(new)
    if len(before) != len(after) or not before or _around(old, before) != _around(new, after):
        return None
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if old[a.start : a.end] != new[b.start : b.end]]
    if any(not a.name or a.name != b.name for a, b in pairs):
        return None
    return frozenset(a.name for a, _ in pairs)


def _around(text: str, found: Sequence[Member]) -> list[str]:
    starts, ends = [m.start for m in found], [m.end for m in found]
    return [text[a:b] for a, b in zip([0, *ends], [*starts, len(text)], strict=True)]


def _owns(member: Member, reached: Iterable[str]) -> bool:
    return bool(member.name) and member.name in reached


def _member(text: str, code: Sequence[Token]) -> Member:
    words = frozenset(token.text for token in code if token.kind == "word")
    start, end = code[0].start, code[-1].end
    opening = _parameters(code)
    if opening is None or code[opening - 1].kind != "word":
        return Member(start, end, words)
    closing = _closing(code, opening)
    inside = text[code[opening].end : code[closing].start]
    body = next((n for n in range(closing, len(code)) if code[n].text == "{"), None)
    return Member(
        start,
        end,
        words - {code[opening - 1].text},
        name=code[opening - 1].text,
        parameters=tuple(named(item)[0] for item in split_list(blank(inside))),
        is_static=any(token.text == "static" for token in code[:opening]),
        is_template=code[0].text == "template",
        body=(code[body].end, code[-1].start) if body is not None else None,
    )


def _parameters(code: Sequence[Token]) -> int | None:
    """Index of the ``(`` of a parameter list; None for a type or an initialiser."""
    angles = 0
    for place, token in enumerate(code):
        if token.text == "{" or (token.text == "=" and angles == 0):
            return None
        if token.text == "<" and place and code[place - 1].kind == "word":
            angles += 1
        elif token.text in (">", ">>>"):
            angles = max(0, angles - len(token.text))
        elif token.text == "(" and angles == 0 and place:
            return place
    return None


def _closing(code: Sequence[Token], opening: int) -> int:
    stack: list[str] = []
    for place in range(opening, len(code)):
        if code[place].text in _CLOSERS:
            stack.append(_CLOSERS[code[place].text])
        elif stack and code[place].text == stack[-1]:
            stack.pop()
            if not stack:
                return place
    return len(code)


def _argument(parameter: str) -> str:
    """A template parameter as the argument that hands it on."""
    name = named(parameter)[0]
    return f"{name}..." if "..." in parameter else name
