"""Rename identifiers in C++, CUDA and macro text; comments, strings and ``#include`` lines stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)")
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    |(?P<include>\#[ \t]*include\b[^\n]*)
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<space>(?:\s|\\\r?\n)+)
    |(?P<mark>::|->|\#\#|<<<|>>>|.)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A piece of text with its kind: word, number, mark, string, character, raw, comment, include or space."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Index after the token."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Renamed:
    """A declaration's old and new name and the namespaces it lives in (None for a macro: it lives in none)."""

    old: str
    new: str
    namespaces: tuple[str, ...] | None = ()


def tokens(text: str) -> list[Token]:
    """All tokens of ``text`` in order; their texts together are ``text``."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "mark"
        found.append(Token("raw" if kind == "fence" else kind, match[0], match.start()))
    return found


def code_tokens(text: str) -> list[Token]:
    """The tokens that a compiler sees: no space, no comment."""
    return [token for token in tokens(text) if token.kind not in ("space", "comment")]


def rename(text: str, renames: Iterable[Renamed]) -> str:
    """``text`` with every mention of the declarations under their new names.

    Left alone: members (after ``.`` or ``->``), names that another namespace or class qualifies, parts
    of a name that ``##`` glues together, comments, strings.
    """
    by_name: dict[str, list[Renamed]] = {}
    for renamed in renames:
        by_name.setdefault(renamed.old, []).append(renamed)
    code = code_tokens(text)
    pieces: list[str] = []
    done = 0
    for place, token in enumerate(code):
        if token.kind == "word" and token.text in by_name:
            new = _new_name(code, place, by_name)
            if new is not None:
                pieces += [text[done : token.start], new]
                done = token.end
    return "".join(pieces) + text[done:]


def mentions(text: str, name: str) -> bool:
    """Whether ``name`` stands in ``text`` as an identifier outside comments and strings."""
    return any(token.kind == "word" and token.text == name for token in code_tokens(text))


def _new_name(code: list[Token], place: int, by_name: Mapping[str, list[Renamed]]) -> str | None:
    before = code[place - 1].text if place else ""
    after = code[place + 1].text if place + 1 < len(code) else ""
    if before in (".", "->") or "##" in (before, after):
        return None
    for renamed in by_name[code[place].text]:
        if before != "::" or _qualified_by(_qualifier(code, place - 1), renamed.namespaces):
            return renamed.new
    return None


def _qualifier(code: list[Token], colons: int) -> str:
    """The name right before the ``::`` at ``colons``; empty for the global ``::name``."""
    if colons == 0:
        return ""
    before = code[colons - 1]
    if before.text == ">":
        # A class template's arguments: whatever it is, it is not a namespace.
        return ">"
    return before.text if before.kind == "word" and before.text not in _NOT_A_QUALIFIER else ""


_NOT_A_QUALIFIER = {"return", "else", "case", "throw", "new", "const", "typename", "co_return", "goto"}


def _qualified_by(qualifier: str, namespaces: tuple[str, ...] | None) -> bool:
    if namespaces is None:
        return False
    named = [name for name in namespaces if name]
    return qualifier == (named[-1] if named else "")
