"""Small repairs of layout, so that generated code keeps the style of the text it was made from."""

from __future__ import annotations

import re

from astra_integrate.reinject.rename import Token, tokens

WIDTH = 80
_DEEP = 48
_BREAK_AFTER = {",", ";", "=", "&", "|", "+", "-", "*", "/", "%", "?", ":"}
_OPENERS, _CLOSERS = {"(", "[", "{", "<<<"}, {")", "]", "}", ">>>"}


def tidy(text: str, original: str) -> str:
    """``text`` with lines no longer than those of ``original`` (or 80 columns), and a macro's backslashes in line."""
    width = max(WIDTH, *(len(line.rstrip("\r")) for line in original.split("\n")))
    if not is_macro(text):
        known = set(original.split("\n"))
        lines = text.split("\n")
        return "\n".join(line if line in known else wrapped(line, width) for line in lines)
    bodies = [re.sub(r"[ \t]*\\\r?$", "", line) for line in text.split("\n")]
    bodies = [part for body in bodies for part in wrapped(body.rstrip("\r"), width - 2).split("\n")]
    return align_continuations(" \\\n".join(bodies))


def wrapped(line: str, width: int) -> str:
    """``line`` broken at spaces between tokens, outermost brackets first; as it is where that can't be done."""
    if len(line.rstrip("\r")) <= width or "//" in line or "/*" in line:
        return line
    indent = len(line) - len(line.lstrip())
    best: tuple[int, int, int] | None = None
    open_at: list[int] = []
    pieces = tokens(line)
    for place, token in enumerate(pieces):
        if token.text in _OPENERS:
            open_at.append(token.end)
        elif token.text in _CLOSERS and open_at:
            open_at.pop()
        if _may_break(pieces, place) and indent < token.start <= width:
            # Shallow breaks read best, but not one that leaves nearly nothing on the first line.
            early = token.start < indent + (width - indent) // 3
            rank = (-int(early), -len(open_at), token.start)
            if best is None or rank > best:
                best, column = rank, _column(open_at, indent)
    if best is None:
        return line
    head, rest = line[: best[2]].rstrip(), line[best[2] :].strip()
    return head + "\n" + wrapped(" " * column + rest, width)


def align_continuations(text: str) -> str:
    """Line a macro's backslashes up right after its longest line, as ``clang-format`` does; other text stays."""
    lines = text.replace("\r\n", "\n").split("\n")
    if not is_macro(text) or len(lines) == 1:
        return text
    bodies = [re.sub(r"[ \t]*\\$", "", line) for line in lines[:-1]]
    column = max(map(len, bodies)) + 1
    return "\n".join([*(f"{body.ljust(column)}\\" for body in bodies), lines[-1]])


def is_macro(text: str) -> bool:
    """Whether ``text`` is a preprocessor directive."""
    return text.lstrip().startswith("#")


def indented(text: str, extra: str) -> str:
    """``text`` with ``extra`` before every line but the first and empty ones."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(extra + line if line.strip() else line for line in rest)])


def _may_break(pieces: list[Token], place: int) -> bool:
    """At a space after a comma, semicolon or operator; right after an opening bracket where nothing else is left."""
    token = pieces[place]
    before = pieces[place - 1].text if place else ""
    if token.kind == "space":
        after = pieces[place + 1].text if place + 1 < len(pieces) else ""
        return before in _BREAK_AFTER and after not in ("", ";", "{")
    return before == "(" and token.text != ")"


def _column(open_at: list[int], indent: int) -> int:
    """Where the rest of a broken line starts: under the open bracket's content, unless that is far to the right."""
    return open_at[-1] if open_at and open_at[-1] <= _DEEP else indent + 4
