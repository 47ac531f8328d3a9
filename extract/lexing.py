"""C++ text without its comments and strings: the little lexing that byte extents and closures need.

Texts are ``str``. A file is decoded as Latin-1 for it, so that a character's index is its byte offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)")
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<character>'(?:\\.|[^'\\\n])+')""",
    re.DOTALL | re.VERBOSE,
)
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSERS = {")", "]", "}"}


@lru_cache(maxsize=4096)
def blank(text: str) -> str:
    """``text`` with comments, strings and character literals overwritten by spaces; length and lines stay.

    The quotes of a string stay, so that ``extern "C"`` is still seen to be one declaration's start.
    """
    pieces: list[str] = []
    done = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "fence" else "raw"
        if kind in ("word", "number"):
            continue
        start, end = match.span()
        if kind in ("string", "character"):
            start, end = start + 1, end - 1
        pieces += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
        done = end
    return "".join(pieces) + text[done:]


@lru_cache(maxsize=16384)
def identifiers(text: str) -> frozenset[str]:
    """Every identifier and keyword of ``text`` outside comments and strings."""
    return frozenset(match["word"] for match in _TOKEN.finditer(text) if match["word"])


def mentions(text: str, name: str) -> bool:
    """Whether ``name`` (``::`` allowed) stands in ``text`` as a whole word, outside comments and strings."""
    parts = [re.escape(part) for part in name.split("::")]
    return re.search(r"(?<!\w)" + r"\s*::\s*".join(parts) + r"(?!\w)", blank(text)) is not None


def closing(text: str, start: int) -> int | None:
    """Index after the bracket that closes the one at ``start`` (blanked text); None where it isn't closed.

    An angle bracket is matched outside of parentheses only: inside them ``>`` compares.
    """
    opener, closer = text[start], _PAIRS[text[start]]
    angle = opener == "<"
    depth = nested = 0
    for index in range(start, len(text)):
        character = text[index]
        if angle and character in "()":
            nested += 1 if character == "(" else -1
        elif nested == 0 and character == opener:
            depth += 1
        elif nested == 0 and character == closer and not (angle and text[index - 1] == "-"):
            depth -= 1
            if depth == 0:
                return index + 1
    return None


def head(text: str) -> str:
    """A declaration up to its body: everything before the first ``{`` or ``;`` outside brackets (blanked)."""
    plain = blank(text)
    depth = 0
    for index, character in enumerate(plain):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character in "{;" and depth == 0:
            return plain[:index]
    return plain


def split_list(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list, not split inside any bracket; blanks around them dropped."""
    items: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in _CLOSERS or (character == ">" and text[index - 1 : index] != "-"):
            depth -= 1
        elif character == "," and depth == 0:
            items.append(text[start:index].strip())
            start = index + 1
    items.append(text[start:].strip())
    return tuple(item for item in items if item)


def directive_lines(plain: str) -> Iterator[tuple[int, int]]:
    """(start, end) of every preprocessor directive in blanked text: from its ``#`` to the end of its last line.

    The line's end (``\\n``, ``\\r\\n``) is not part of it; backslash-continued lines are.
    """
    for match in re.finditer(r"^[ \t]*(#(?:\\\r?\n|[^\n])*)", plain, re.MULTILINE):
        start, end = match.span(1)
        while end > start and plain[end - 1] in " \t\r":
            end -= 1
        yield start, end
