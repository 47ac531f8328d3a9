"""Read a CMake file as commands with arguments: no evaluation, only the language's grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """One argument as written; variables in ``text`` are expanded unless ``literal`` (``[[…]]``)."""

    text: str
    quoted: bool = False
    literal: bool = False


@dataclass(frozen=True)
class Command:
    """One call ``name(arguments)``; the name is in lower case, since CMake ignores its case."""

    name: str
    arguments: tuple[Argument, ...]


_COMMAND = re.compile(r"[ \t]*([A-Za-z_]\w*)[ \t]*\(")
_COMMENT = re.compile(r"#\[(=*)\[.*?\]\1\]|#[^\n]*", re.DOTALL)
_BRACKET = re.compile(r"\[(=*)\[(.*?)\]\1\]", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_UNQUOTED = re.compile(r'(?:\\.|\$\{[^}]*\}|"[^"]*"|[^\s()#"\\])+')
_ESCAPE = re.compile(r"\\(\n|.)", re.DOTALL)


def commands(text: str) -> list[Command]:
    """All commands of a CMake file in order; what isn't a command is skipped."""
    found: list[Command] = []
    position = 0
    while position < len(text):
        comment = _COMMENT.match(text, position)
        if comment:
            position = comment.end()
            continue
        head = _COMMAND.match(text, position)
        if head:
            arguments, position = _arguments(text, head.end())
            found.append(Command(head[1].lower(), tuple(arguments)))
            continue
        position += 1
    return found


def _arguments(text: str, position: int) -> tuple[list[Argument], int]:
    arguments: list[Argument] = []
    depth = 1
    while position < len(text):
        character = text[position]
        if character.isspace():
            position += 1
        elif character == "(":
            depth += 1
            arguments.append(Argument("("))
            position += 1
        elif character == ")":
            depth -= 1
            position += 1
            if depth == 0:
                break
            arguments.append(Argument(")"))
        elif character == "#":
            comment = _COMMENT.match(text, position)
            position = comment.end() if comment else position + 1
        elif bracket := _BRACKET.match(text, position):
            arguments.append(Argument(bracket[2], quoted=True, literal=True))
            position = bracket.end()
        elif quoted := _QUOTED.match(text, position):
            arguments.append(Argument(quoted[1], quoted=True))
            position = quoted.end()
        elif plain := _UNQUOTED.match(text, position):
            arguments.append(Argument(plain[0]))
            position = plain.end()
        else:
            position += 1
    return arguments, position


def unescape(text: str) -> str:
    """Resolve CMake's escapes in an argument; ``\\;`` stays, since it is a list's escape."""

    def resolved(match: re.Match[str]) -> str:
        plain = {"n": "\n", "t": "\t", "r": "\r", "\n": "", ";": "\\;"}
        return plain.get(match[1], match[1])

    return _ESCAPE.sub(resolved, text)
