"""CUDA's own syntax turned into what a host compiler reads: launches, shared memory, inline assembly."""

from __future__ import annotations

import re
from dataclasses import dataclass

from astra_integrate.extract.lexing import blank

from .ptx import rewrite_assembly

_EXTERN_SHARED = re.compile(r"\bextern\s+__shared__\b(?P<rest>[^;{}()]*(?:\([^;{}]*?\)[^;{}()]*)*);")
_ALIGNMENT = re.compile(r"\b(?:alignas|__align__)\s*\(\s*(?P<bytes>[^()]*(?:\([^()]*\)[^()]*)*)\)")
_DECLARATOR = re.compile(r"^(?P<type>.+?)\b(?P<name>[A-Za-z_]\w*)\s*\[\s*\]\s*$", re.DOTALL)
_SHARED_ALIGNED = re.compile(r"\b__shared__(?P<space>\s+)(?P<align>alignas\s*\((?:[^()]|\([^()]*\))*\))")
_STATIC_SHARED = re.compile(r"\bstatic\s+__shared__\b|\b__shared__\s+static\b")


@dataclass(frozen=True)
class HostText:
    """Source that a host compiler reads; ``dynamic_alignment`` is what it asks of dynamic shared memory (bytes)."""

    text: str
    dynamic_alignment: int


def host_text(text: str) -> HostText:
    """``text`` (CUDA C++) with launches, shared memory and assembly as calls into the emulation."""
    text = rewrite_launches(text)
    text, alignment = rewrite_shared(text)
    return HostText(rewrite_assembly(text), alignment)


def rewrite_launches(text: str) -> str:
    """``callee<<<grid, block>>>(arguments)`` becomes ``callee ->* ::emu::config(grid, block)(arguments)``.

    Comments, strings and the lines of a macro body stay as they are. A ``<<<`` without its
    ``>>>`` is left alone: the compiler then names the line.
    """
    plain = blank(text)
    pieces: list[str] = []
    done = 0
    for match in re.finditer("<<<", plain):
        if match.start() < done:
            continue
        end = _configuration_end(plain, match.end())
        if end is None:
            continue
        pieces += [text[done : match.start()], " ->* ::emu::config(", text[match.end() : end], ")"]
        done = end + 3
    return "".join(pieces) + text[done:]


def _configuration_end(plain: str, start: int) -> int | None:
    depth = 0
    for index in range(start, len(plain)):
        character = plain[index]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == ";" or depth < 0:
            return None
        elif character == ">" and depth == 0 and plain.startswith(">>>", index):
            return index
    return None


def rewrite_shared(text: str) -> tuple[str, int]:
    """Dynamic shared arrays become pointers into the block's own; the largest alignment asked for, in bytes."""
    plain = blank(text)
    alignment = 16
    pieces: list[str] = []
    done = 0
    for match in _EXTERN_SHARED.finditer(plain):
        rest = match["rest"]
        for asked in _ALIGNMENT.finditer(rest):
            # An alignment that isn't a plain number is at most that of TMA's swizzled tiles.
            alignment = max(alignment, int(asked["bytes"]) if asked["bytes"].strip().isdigit() else 1024)
        declarator = _DECLARATOR.match(_ALIGNMENT.sub("", rest).replace("\\\n", " ").strip())
        if declarator is None:
            continue
        kind, name = declarator["type"].strip(), declarator["name"]
        replaced = f"{kind}* const {name} = static_cast<{kind}*>(::emu::dynamic_shared());"
        lost = match[0].count("\n")
        pieces += [text[done : match.start()], replaced]
        if lost and "\\\n" not in match[0]:
            pieces.append("\n" * lost)
        done = match.end()
    text = "".join(pieces) + text[done:]
    text = _STATIC_SHARED.sub("__shared__", text)
    return _SHARED_ALIGNED.sub(r"\g<align> __shared__", text), alignment
