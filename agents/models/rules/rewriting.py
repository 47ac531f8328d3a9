"""Edits of a text by byte range, nested ones included: passes propose them, one function applies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Put ``text`` in place of bytes ``start`` to ``end``; an insertion has ``start == end``."""

    start: int
    end: int
    text: str


def apply(text: bytes, changes: Sequence[Change], start: int = 0, end: int | None = None) -> str:
    """``text[start:end]`` with ``changes`` made; insertions at one place keep the order in which they are given.

    Raises ``ValueError`` where two changes overlap: that is a fault of the pass that made them.
    """
    end = len(text) if end is None else end
    parts: list[bytes] = []
    done = start
    for change in sorted(changes, key=lambda change: (change.start, change.end)):
        if change.start < done or change.end > end:
            raise ValueError(f"overlapping changes at byte {change.start}")
        parts += [text[done : change.start], change.text.encode("utf-8", "surrogateescape")]
        done = change.end
    parts.append(text[done:end])
    return b"".join(parts).decode("utf-8", "surrogateescape")


def dedent(text: str) -> str:
    """Without the blanks that all lines but the first start with (directives, which stand left, don't count)."""
    lines = text.split("\n")
    indents = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip() and not line.startswith("#")]
    smallest = min(indents, default=0)
    return "\n".join(line if line.startswith("#") else line[smallest:] for line in lines)


def indent(text: str, by: int) -> str:
    """Every line but empty ones and directives moved right by ``by`` blanks."""
    return "\n".join(line if not line.strip() or line.startswith("#") else " " * by + line for line in text.split("\n"))
