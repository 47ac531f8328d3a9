"""C++ and CUDA source as text: comments blanked, brackets balanced, names found. No parser.

All functions keep offsets: a blanked text is exactly as long as the original. Bytes that are no UTF-8 are
decoded with surrogateescape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NOISE = re.compile(
    r'R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+'"
    r"|//(?:[^\n\\]|\\\r?\n|\\.)*"
    r"|/\*.*?\*/",
    re.DOTALL,
)
_BRACKETS = {"(": ")", "{": "}", "[": "]"}
_GLOBAL = re.compile(r"\b__global__\b")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def read(path: Path) -> str:
    """The file's bytes as text, line ends untouched."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def blank(text: str, *, strings: bool = False) -> str:
    """``text`` with comments (and with ``strings`` the inside of literals) replaced by spaces."""

    def spaced(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == "/":
            return re.sub(r"[^\r\n]", " ", token)
        if not strings:
            return token
        return token[0] + re.sub(r"[^\r\n]", " ", token[1:-1]) + token[-1]

    return _NOISE.sub(spaced, text)


def closing(text: str, opening: int) -> int:
    """Offset just past the bracket that closes the one at ``opening``; the text's end if none does.

    ``text`` has comments and strings blanked.
    """
    stack: list[str] = []
    for match in _BRACKET.finditer(text, opening):
        character = match[0]
        if character in _BRACKETS:
            stack.append(_BRACKETS[character])
        elif stack and character == stack[-1]:
            stack.pop()
            if not stack:
                return match.end()
    return len(text)


def split_top(text: str, separator: str = ",") -> list[str]:
    """Split at ``separator`` outside of brackets, angle brackets of template-ids and literals; parts stripped."""
    parts: list[str] = []
    depth = angle = start = 0
    plain = blank(text, strings=True)
    for index, character in enumerate(plain):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "<" and depth == 0 and _opens_template(plain, index):
            angle += 1
        elif character == ">" and angle and depth == 0 and plain[index - 1] != "-":
            angle -= 1
        elif character == separator and depth == 0 and angle == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def _opens_template(text: str, index: int) -> bool:
    """A ``<`` right after a name, with a ``>`` later and no operator in between, opens template arguments."""
    before = text[:index].rstrip()
    if not before or not (before[-1].isalnum() or before[-1] == "_"):
        return False
    close = text.find(">", index)
    return close > 0 and not re.search(r"&&|\|\||;", text[index:close])


@dataclass(frozen=True)
class GlobalMention:
    """A ``__global__`` in the text: 1-based ``line``, the function's ``name`` ("" where none follows)."""

    offset: int
    line: int
    name: str


def global_mentions(plain: str) -> list[GlobalMention]:
    """Every ``__global__`` in blanked text with the name of the function that follows."""
    return [
        GlobalMention(match.start(), plain.count("\n", 0, match.start()) + 1, _declared_name(plain, match.end()))
        for match in _GLOBAL.finditer(plain)
    ]


_NO_DECLARATION = re.compile(r"\b(?:return|new|else|case|throw|co_return)$")
_BODY_FOLLOWS = re.compile(r"\s*(?:const\b\s*|noexcept\b\s*|override\b\s*|->\s*[\w:<>,\s&*]+?)*\{")
_NAME_FOLLOWS = re.compile(r"\s*[A-Za-z_]")
_BRACKET = re.compile(r"[(){}\[\]]")
_SPECIFIER = re.compile(r"(?:__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__|__attribute__|alignas)$")


def _declared_name(plain: str, position: int) -> str:
    """Name of the function declared from ``position`` on: the identifier before its parameter list."""
    scan = re.compile(r"[({;]|\\\r?\n")
    while True:
        match = scan.search(plain, position)
        if match is None or match[0] in "{;":
            return ""
        if match[0][0] == "\\":
            position = match.end()
            continue
        before = re.search(r"([A-Za-z_]\w*(?:\s*##\s*\w+)*)\s*$", plain[max(0, match.start() - 200) : match.start()])
        name = before[1] if before else ""
        if name and not _SPECIFIER.search(name) and name != "__global__" and not _is_macro_like(name, plain, match):
            return name
        position = closing(plain, match.start())


def _is_macro_like(name: str, plain: str, match: re.Match[str]) -> bool:
    """An upper-case name whose brackets are followed by a further identifier is an attribute macro."""
    if name.upper() != name:
        return False
    return bool(_NAME_FOLLOWS.match(plain, closing(plain, match.start())))


def includes(text: str) -> Iterator[tuple[str, bool]]:
    """Each ``#include``: the name as written and whether it is in quotes."""
    for match in _INCLUDE.finditer(blank(text)):
        yield match[2].strip(), match[1] == '"'


def definitions(plain: str, name: str) -> list[int]:
    """Offsets at which a function ``name`` is *defined* in blanked text (text level: may report too much)."""
    found: list[int] = []
    for match in re.finditer(rf"(?<![\w.>]){re.escape(name)}\s*\(", plain):
        before = plain[max(0, match.start() - 300) : match.start()].rstrip()
        if not before or not (before[-1].isalnum() or before[-1] in "_>&*:"):
            continue
        if _NO_DECLARATION.search(before):
            continue
        if _BODY_FOLLOWS.match(plain, closing(plain, match.end() - 1)):
            found.append(match.start())
    return found


_ROCM = r"defined\s*\(?\s*USE_ROCM\s*\)?"


def without_rocm(text: str) -> str:
    """``text`` with what only a ROCm build sees (``USE_ROCM`` defined) blanked; offsets are kept."""
    out: list[str] = []
    stack: list[str] = []  # "rocm…": in a ROCm-only branch, "cuda": in the other one, "": neither
    for line in text.splitlines(keepends=True):
        directive = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", line)
        if directive:
            word, rest = directive[1], directive[2]
            if word in ("if", "ifdef", "ifndef"):
                stack.append(_branch(word, rest))
            elif word in ("else", "elif") and stack:
                stack[-1] = {"rocm": "cuda", "cuda": "rocm"}.get(stack[-1], "") if word == "else" else ""
            elif word == "endif" and stack:
                stack.pop()
        hidden = any(state.startswith("rocm") for state in stack) and not directive
        out.append(re.sub(r"[^\r\n]", " ", line) if hidden else line)
    return "".join(out)


def _branch(word: str, rest: str) -> str:
    condition = blank(rest).strip()
    if word == "ifdef":
        return "rocm" if condition == "USE_ROCM" else ""
    if word == "ifndef":
        return "cuda" if condition == "USE_ROCM" else ""
    if re.fullmatch(rf"!\s*{_ROCM}", condition):
        return "cuda"
    if re.fullmatch(_ROCM, condition):
        return "rocm"
    # ROCm and something more: the other branch is not CUDA's alone.
    return "rocm and" if "||" not in condition and re.search(rf"(?<![!\w]){_ROCM}", condition) else ""
