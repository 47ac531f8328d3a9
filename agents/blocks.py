"""Code blocks and top-level declarations in the text of an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from astra_integrate.extract.lexing import blank

_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$")
CODE = {"", "c", "c++", "cpp", "cu", "cuda", "cuh", "cuda-c", "cuda-cpp", "cuda c++"}
_NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*[\w:]*\s*$")
_NAME = re.compile(r"(\w+)\s*$")


@dataclass(frozen=True)
class Block:
    """One fenced block. ``closed`` is False where the text ends before its fence does."""

    info: str
    text: str
    closed: bool

    @property
    def is_code(self) -> bool:
        """Whether its label is that of C++ or CUDA, or it has none."""
        return self.info.strip().lower() in CODE


@dataclass(frozen=True)
class Chunk:
    """A top-level declaration of a block: ``name`` is what it defines, ``head`` its text up to the body or ``;``."""

    name: str
    head: str
    text: str
    function: bool


def blocks(text: str) -> list[Block]:
    """The fenced blocks: only a line of its own opens or closes one, so a fence inside a line does neither."""
    found: list[Block] = []
    mark, info, lines = "", "", list[str]()
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if not mark:
            if fence:
                mark, info, lines = fence["mark"], fence["info"], []
        elif fence and fence["mark"].startswith(mark) and not fence["info"].strip():
            found.append(Block(info, "\n".join(lines), True))
            mark = ""
        else:
            lines.append(line)
    if mark:
        found.append(Block(info, "\n".join(lines), False))
    return found


def chunks(code: str) -> tuple[list[Chunk], str]:
    """Top-level declarations, those inside namespaces included, and what is left over at the end (cut off)."""
    plain = blank(code)
    found: list[Chunk] = []
    start = position = depth = 0
    body = -1
    while position < len(plain):
        character = plain[position]
        if character == "#" and depth == 0 and not plain[start:position].strip():
            end = _directive_end(plain, position)
            found.append(Chunk(_directive_name(code[position:end]), "#", code[position:end], False))
            start = position = end
            continue
        if character == "{" and depth == 0 and _NAMESPACE.search(plain[start:position]):
            start = position + 1
        elif character in "{([":
            body = position if character == "{" and depth == 0 and body < 0 else body
            depth += 1
        elif character in "})]":
            if depth == 0:  # a namespace's end
                start = position + 1
            else:
                depth -= 1
                if depth == 0 and character == "}" and not _goes_on(plain, start, position, body):
                    found.append(_chunk(code, plain, start, position + 1, body))
                    start, body = position + 1, -1
        elif character == ";" and depth == 0:
            if plain[start:position].strip():
                found.append(_chunk(code, plain, start, position + 1, body))
            start, body = position + 1, -1
        position += 1
    rest = plain[start:].strip()
    return found, code[start:].strip() if rest else ""


def _goes_on(plain: str, start: int, position: int, body: int) -> bool:
    """Whether a ``;`` (of a class or an initialiser) still belongs to the declaration whose brace just closed."""
    return plain[position + 1 :].lstrip().startswith((";", ",")) or "(" not in plain[start:body]


def _directive_end(plain: str, position: int) -> int:
    while True:
        line = plain.find("\n", position)
        if line < 0:
            return len(plain)
        if not plain[position:line].rstrip().endswith("\\"):
            return line + 1
        position = line + 1


def _directive_name(text: str) -> str:
    match = re.match(r"#\s*define\s+(\w+)", text)
    return match[1] if match else ""


def _chunk(code: str, plain: str, start: int, end: int, body: int) -> Chunk:
    head = plain[start : body if body >= 0 else end].strip().rstrip(";").strip()
    text = code[start:end].strip("\n")
    lead = len(text) - len(text.lstrip())
    return Chunk(_defined(head), head, text[lead:].rstrip(), body >= 0 and "(" in _without_template(head))


def _defined(head: str) -> str:
    """The name that a declaration's head defines: of a function the word before its parameters, else the last word."""
    rest = _without_template(head)
    record = re.match(
        r"(?:typedef\s+)?(?:struct|class|union|enum(?:\s+class)?)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)", rest
    )
    if record:
        return record[1]
    alias = re.match(r"using\s+(\w+)\s*=", rest)
    if alias:
        return alias[1]
    for match in re.finditer(r"(\w+)\s*\(", rest):
        if match[1] not in (
            "__launch_bounds__",
            "alignas",
            "__align__",
            "decltype",
            "__attribute__",
            "noexcept",
            "requires",
        ):
            return match[1]
    name = _NAME.search(re.split(r"[=\[{]", rest)[0])
    return name[1] if name else ""


def _without_template(head: str) -> str:
    head = head.strip()
    while head.startswith("template"):
        opening = head.find("<")
        if opening < 0:
            return head
        depth = 0
        for index in range(opening, len(head)):
            depth += {"<": 1, ">": -1, "(": 1000, ")": -1000}.get(head[index], 0)
            if depth == 0:
                head = head[index + 1 :].strip()
                break
        else:
            return head
    return head
