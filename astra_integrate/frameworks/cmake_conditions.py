"""Conditions of CMake's ``if``: words, comparisons, NOT, AND, OR, parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from packaging.version import InvalidVersion, Version

_FALSE = {"", "0", "off", "no", "false", "n", "ignore", "notfound"}
_FILE_TESTS = ("EXISTS", "TARGET", "IS_ABSOLUTE", "IS_DIRECTORY", "COMMAND", "POLICY")


class Condition:
    """The condition of an ``if``: a small recursive descent over its words."""

    def __init__(self, words: Sequence[tuple[str, bool]], variables: Mapping[str, str]) -> None:
        """``words`` are expanded; the flag tells whether a word may name a variable or an operator."""
        self._words = words
        self._variables = variables
        self._at = 0

    def holds(self) -> bool:
        """Whether the condition is true."""
        return self._either()

    def _peek(self) -> str:
        return self._words[self._at][0] if self._at < len(self._words) and self._words[self._at][1] else ""

    def _either(self) -> bool:
        value = self._both()
        while self._peek() == "OR":
            self._at += 1
            right = self._both()
            value = value or right
        return value

    def _both(self) -> bool:
        value = self._one()
        while self._peek() == "AND":
            self._at += 1
            right = self._one()
            value = value and right
        return value

    def _one(self) -> bool:
        word = self._peek()
        if word == "NOT":
            self._at += 1
            return not self._one()
        if word == "(":
            self._at += 1
            value = self._either()
            self._at += 1
            return value
        if word == "DEFINED":
            name = self._take()
            return name in self._variables
        if word in _FILE_TESTS:
            self._take()
            return False
        if self._at >= len(self._words):
            return False
        left, bare = self._words[self._at]
        self._at += 1
        if self._peek() in _COMPARISONS:
            operator = self._peek()
            self._at += 1
            right, right_bare = self._words[self._at] if self._at < len(self._words) else ("", False)
            self._at += 1
            if operator == "IN_LIST":
                return self._value(left, bare) in self._variables.get(right, "").split(";")
            plain_right = right if operator == "MATCHES" else self._value(right, right_bare)
            return _COMPARISONS[operator](self._value(left, bare), plain_right)
        return self._truth(left, bare)

    def _take(self) -> str:
        self._at += 1
        word = self._words[self._at][0] if self._at < len(self._words) else ""
        self._at += 1
        return word

    def _value(self, text: str, bare: bool) -> str:
        return self._variables.get(text, text) if bare else text

    def _truth(self, text: str, bare: bool) -> bool:
        if bare and text in self._variables:
            text = self._variables[text]
        elif bare and text.lower() not in ("1", "on", "yes", "true", "y"):
            return False
        return text.lower() not in _FALSE and not text.lower().endswith("-notfound")


def version(text: str) -> Version:
    """A version such as ``13.0`` or ``12.0f`` by its numbers; anything else is version 0."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    try:
        return Version(found[0]) if found else Version("0")
    except InvalidVersion:
        return Version("0")


def matches(left: str, right: str) -> bool:
    """Whether the regular expression ``right`` is found in ``left``; one that Python can't read is not."""
    try:
        return re.search(right, left) is not None
    except re.error:
        return False


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "STREQUAL": lambda a, b: a == b,
    "MATCHES": matches,
    "IN_LIST": lambda a, b: False,
    "EQUAL": lambda a, b: _number(a) == _number(b),
    "LESS": lambda a, b: _number(a) < _number(b),
    "GREATER": lambda a, b: _number(a) > _number(b),
    "LESS_EQUAL": lambda a, b: _number(a) <= _number(b),
    "GREATER_EQUAL": lambda a, b: _number(a) >= _number(b),
    "VERSION_EQUAL": lambda a, b: version(a) == version(b),
    "VERSION_LESS": lambda a, b: version(a) < version(b),
    "VERSION_GREATER": lambda a, b: version(a) > version(b),
    "VERSION_LESS_EQUAL": lambda a, b: version(a) <= version(b),
    "VERSION_GREATER_EQUAL": lambda a, b: version(a) >= version(b),
}
