"""Evaluate CMake commands far enough to learn what a build compiles, and with which flags.

Only the language is here: variables, lists, conditions, loops, functions. Commands that mean
something to a project (targets, sources, properties) are given by the caller as ``natives``; every other
command is skipped. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .cmake_conditions import Condition, matches
from .cmake_text import Argument, Command, unescape

Native = Callable[["Evaluation", list[str]], None]
_REFERENCE = re.compile(r"\$(ENV|CACHE)?\{([^${}]*)\}")
_OPENERS = {"if": "endif", "foreach": "endforeach", "function": "endfunction", "macro": "endmacro", "while": "endwhile"}


class _Return(Exception):
    """A ``return()``: leaves the file or function."""


class _Break(Exception):
    """A ``break()``: leaves the loop."""


@dataclass
class Evaluation:
    """Variables and functions of one run over a project's CMake files."""

    variables: dict[str, str]
    natives: dict[str, Native]
    functions: dict[str, tuple[Command, list[Command]]] = field(default_factory=dict)
    _parents: list[dict[str, str]] = field(default_factory=list)

    def run(self, commands: Sequence[Command]) -> None:
        """Run the commands of a file."""
        try:
            self._block(commands)
        except _Return:
            return

    def get(self, name: str) -> list[str]:
        """The list in variable ``name``; empty where it isn't set."""
        return as_list(self.variables.get(name, ""))

    def put(self, name: str, items: Sequence[str]) -> None:
        """Set variable ``name`` to a list."""
        self.variables[name] = ";".join(items)

    def expand(self, arguments: Sequence[Argument]) -> list[str]:
        """Arguments with their variables replaced and, where unquoted, split at semicolons."""
        out: list[str] = []
        for argument in arguments:
            text = argument.text if argument.literal else self._substitute(unescape(argument.text))
            if argument.quoted:
                out.append(text)
            else:
                out.extend(as_list(text))
        return out

    def _words(self, arguments: Sequence[Argument]) -> list[tuple[str, bool]]:
        words: list[tuple[str, bool]] = []
        for argument in arguments:
            text = ";".join(self.expand([argument]))
            if text or argument.quoted:
                words.append((text, not argument.quoted and "$" not in argument.text))
        return words

    def _substitute(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            return "" if match[1] else self.variables.get(match[2], "")

        while _REFERENCE.search(text):
            text = _REFERENCE.sub(value, text)
        return text

    def _block(self, commands: Sequence[Command]) -> None:
        index = 0
        while index < len(commands):
            command = commands[index]
            if command.name in _OPENERS:
                end = _closing(commands, index)
                self._structure(command, commands[index + 1 : end])
                index = end + 1
                continue
            self._call(command)
            index += 1

    def _structure(self, opener: Command, body: Sequence[Command]) -> None:
        if opener.name == "if":
            for condition, branch in _branches(opener, body):
                if condition is None or Condition(self._words(condition), self.variables).holds():
                    self._block(branch)
                    return
        elif opener.name == "foreach":
            self._loop(self.expand(opener.arguments), body)
        elif opener.name in ("function", "macro"):
            name = self.expand(opener.arguments[:1])[0].lower()
            if name not in self.natives:
                self.functions[name] = (opener, list(body))

    def _loop(self, words: list[str], body: Sequence[Command]) -> None:
        name, items = words[0], words[1:]
        if items[:2] == ["IN", "LISTS"]:
            items = [item for variable in items[2:] for item in self.get(variable)]
        elif items[:2] == ["IN", "ITEMS"]:
            items = items[2:]
        for item in items:
            self.variables[name] = item
            try:
                self._block(body)
            except _Break:
                break

    def _call(self, command: Command) -> None:
        if command.name == "return":
            raise _Return
        if command.name == "break":
            raise _Break
        words = self.expand(command.arguments)
        native = self.natives.get(command.name) or _LANGUAGE.get(command.name)
        if native is not None:
            native(self, words)
        elif command.name in self.functions:
            self._function(*self.functions[command.name], words)

    def _function(self, opener: Command, body: list[Command], words: list[str]) -> None:
        parameters = [argument.text for argument in opener.arguments[1:]]
        inner = dict(self.variables) | dict(zip(parameters, words, strict=False))
        inner["ARGN"] = ";".join(words[len(parameters) :])
        outer = self.variables
        self.variables = inner
        if opener.name == "function":
            self._parents.append(outer)
        try:
            self._block(body)
        except _Return:
            pass
        finally:
            if opener.name == "function":
                self._parents.pop()
                self.variables = outer
            else:
                outer.update(inner)
                self.variables = outer

    @property
    def parent(self) -> dict[str, str]:
        """Variables of the scope that called the running function."""
        return self._parents[-1] if self._parents else self.variables


def as_list(text: str) -> list[str]:
    """A CMake list; empty elements are dropped, as in an unquoted argument."""
    return [item for item in text.split(";") if item]


def _closing(commands: Sequence[Command], start: int) -> int:
    depth = 0
    opener = commands[start].name
    for index in range(start, len(commands)):
        if commands[index].name == opener:
            depth += 1
        elif commands[index].name == _OPENERS[opener]:
            depth -= 1
            if depth == 0:
                return index
    return len(commands)


def _branches(opener: Command, body: Sequence[Command]) -> list[tuple[tuple[Argument, ...] | None, Sequence[Command]]]:
    branches: list[tuple[tuple[Argument, ...] | None, Sequence[Command]]] = []
    condition: tuple[Argument, ...] | None = opener.arguments
    depth, start = 0, 0
    for index, command in enumerate(body):
        if command.name == "if":
            depth += 1
        elif command.name == "endif":
            depth -= 1
        elif depth == 0 and command.name in ("elseif", "else"):
            branches.append((condition, body[start:index]))
            condition = command.arguments if command.name == "elseif" else None
            start = index + 1
    branches.append((condition, body[start:]))
    return branches


def _set(evaluation: Evaluation, words: list[str]) -> None:
    name, items = words[0], words[1:]
    scope = evaluation.variables
    if items[-1:] == ["PARENT_SCOPE"]:
        items, scope = items[:-1], evaluation.parent
    if "CACHE" in items:
        items = items[: items.index("CACHE")]
        if name in scope:
            return
    if not items:
        scope.pop(name, None)
        return
    scope[name] = ";".join(items)


def _unset(evaluation: Evaluation, words: list[str]) -> None:
    evaluation.variables.pop(words[0], None)


def _list(evaluation: Evaluation, words: list[str]) -> None:
    operation, name, items = words[0], words[1], words[2:]
    current = evaluation.get(name)
    if operation == "APPEND":
        evaluation.put(name, current + [part for item in items for part in as_list(item)])
    elif operation == "PREPEND":
        evaluation.put(name, [part for item in items for part in as_list(item)] + current)
    elif operation == "REMOVE_ITEM":
        gone = {part for item in items for part in as_list(item)}
        evaluation.put(name, [item for item in current if item not in gone])
    elif operation == "REMOVE_DUPLICATES":
        evaluation.put(name, list(dict.fromkeys(current)))
    elif operation == "FILTER":
        keep = items[0] == "INCLUDE"
        evaluation.put(name, [item for item in current if matches(item, items[2]) == keep])


_LANGUAGE: dict[str, Native] = {
    "set": _set,
    "unset": _unset,
    "list": _list,
}
