"""The text of a launch site: geometry, arguments, callee, cut out of the file from a byte offset."""

from __future__ import annotations

import re
from dataclasses import dataclass

from astra_integrate.extract import cpp_text


@dataclass(frozen=True)
class SiteText:
    """What a launch site spells; every part as one line."""

    grid: str
    block: str
    shared_bytes: str
    stream: str
    arguments: tuple[str, ...]
    callee: str


class FileSites:
    """One file's text for cutting launch sites; characters are bytes (Latin-1), so offsets are libclang's."""

    def __init__(self, data: bytes) -> None:
        self._text = data.decode("latin-1")
        self._plain = cpp_text.blank(self._text, strings=True)

    def line(self, offset: int) -> int:
        """1-based line of ``offset``."""
        return self._text.count("\n", 0, offset) + 1

    def macro(self, offset: int) -> str | None:
        """Name of the macro whose ``#define`` holds ``offset``, if any."""
        start = offset
        while True:
            start = self._plain.rfind("\n", 0, start)
            if start < 0 or not re.search(r"\\\r?$", self._plain[max(0, start - 2) : start]):
                break
        match = re.compile(r"\s*#\s*define\s+(\w+)").match(self._plain, start + 1)
        return match[1] if match else None

    def chevrons(self, offset: int) -> SiteText | None:
        """The launch whose ``<<<`` is at ``offset``; None where the text there is something else."""
        if self._plain[offset : offset + 3] != "<<<":
            return None
        end = self._chevrons_end(offset + 3)
        opening = self._plain.find("(", end)
        if end < 0 or opening < 0 or self._plain[end + 3 : opening].strip(" \t\r\n\\"):
            return None
        words = self._split(offset + 3, end)
        arguments = self._split(opening + 1, cpp_text.closing(self._plain, opening) - 1)
        return _site(words, arguments, self._callee_before(offset))

    def call(self, offset: int) -> list[list[str]]:
        """Arguments of each bracket group of ``name(a)(b)`` or ``name(a).method(b)(c)`` that starts at ``offset``."""
        groups: list[list[str]] = []
        position = offset
        while True:
            opening = re.compile(r"[\w:\s.\\]*(?:<[^;(){}]*>)?\s*([({])").match(self._plain, position)
            if opening is None:
                return groups
            end = cpp_text.closing(self._plain, opening.start(1))
            groups.append(self._split(opening.start(1) + 1, end - 1))
            position = end
            if not re.compile(r"\s*\\?\s*(?:\.|\()").match(self._plain, position):
                return groups

    def assigned(self, start: int, end: int, member: str) -> str:
        """The last right side of ``….member = …;`` or ``.member = …,`` between two offsets; empty if none."""
        found = re.findall(rf"\.\s*{member}\s*=\s*([^;]+?)\s*(?:;|,\s*(?:\\?\s*)\.|}})", self._plain[start:end])
        return _one_line(found[-1]) if found else ""

    def words(self, offset: int) -> list[str]:
        """Identifiers from ``offset`` to the next ``;``."""
        end = self._plain.find(";", offset)
        return re.findall(r"[A-Za-z_]\w*", self._plain[offset : end if end >= 0 else None])

    def _split(self, start: int, end: int) -> list[str]:
        inner = cpp_text.blank(self._text[start:end])
        return [_one_line(part) for part in cpp_text.split_top(inner)]

    def _chevrons_end(self, position: int) -> int:
        depth = 0
        while position < len(self._plain):
            character = self._plain[position]
            if character in "([{":
                depth += 1
            elif character in ")]}":
                depth -= 1
            elif depth == 0 and self._plain.startswith(">>>", position):
                # "f<g<h>>>>" can't be told apart; the last three of a longer run close the launch.
                while self._plain.startswith(">>>>", position):
                    position += 1
                return position
            position += 1
        return -1

    def _callee_before(self, offset: int) -> str:
        end = len(self._plain[:offset].rstrip(" \t\r\n\\"))
        start = end
        if self._plain[start - 1 : start] == ">":
            start = self._opening_angle(start - 1)
        elif self._plain[start - 1 : start] == ")":
            depth = 0
            while start > 0:
                start -= 1
                depth += (self._plain[start] == ")") - (self._plain[start] == "(")
                if depth == 0:
                    break
        head = re.search(r"[\w:]*$", self._plain[:start])
        return _one_line(self._text[head.start() if head else start : end])

    def _opening_angle(self, position: int) -> int:
        depth = brackets = 0
        while position >= 0:
            character = self._plain[position]
            brackets += (character in ")]") - (character in "([")
            if brackets == 0:
                depth += (character == ">") - (character == "<")
                if depth == 0:
                    return len(self._plain[:position].rstrip())
            position -= 1
        return 0


def _site(words: list[str], arguments: list[str], callee: str) -> SiteText:
    padded = [*words, "", "", "", ""]
    return SiteText(padded[0], padded[1], padded[2] or "0", padded[3] or "0", tuple(arguments), callee)


def _one_line(text: str) -> str:
    joined = re.sub(r"\\\r?\n", " ", text).encode("latin-1", "replace").decode("utf-8", "replace")
    return re.sub(r"\s+", " ", joined).strip().rstrip("\\").rstrip()
