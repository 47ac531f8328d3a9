"""Small repairs of layout, so that generated code keeps the style of the text it was made from."""

from __future__ import annotations

import re


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
