"""Expressions of a launch plan, turned into C++ for one launch site.

The language is what C++ and Python have in common: names, numbers, ``+ - * / %``, comparisons,
``and or not`` (or ``&& || !``), ``min``, ``max``, ``ceil_div``, ``sizeof(T)`` and ``aligned(pointer, bytes)``.
``/`` is division of whole numbers.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from astra_integrate.errors import BadInput

_BINARY = {ast.Add: ("+", 1), ast.Sub: ("-", 1), ast.Mult: ("*", 2), ast.Div: ("/", 2), ast.FloorDiv: ("/", 2)}
_BINARY[ast.Mod] = ("%", 2)
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_LOOSEST, _UNARY, _PRIMARY = 0, 3, 4
_LANGUAGE = "Plans may use + - * / %, comparisons, and, or, not, min, max, ceil_div, sizeof and aligned"


@dataclass(frozen=True)
class Scope:
    """What names mean at a launch: ``values`` (parameter, ``grid_x``, ``block_x``) and ``types`` as C++ text."""

    values: Mapping[str, str]
    types: Mapping[str, str]


@dataclass(frozen=True)
class Cpp:
    """C++ text; ``level`` of its outermost operator (0 loosest, 4 needs no brackets); ``wide``: it has 64 bits."""

    text: str
    level: int
    wide: bool = False

    def at(self, least: int) -> str:
        """The text, in brackets where an operator of level ``least`` would take it apart."""
        return f"({self.text})" if self.level < least else self.text


def to_cpp(expression: str, scope: Scope, constants: Mapping[str, str] | None = None) -> str:
    """``expression`` as C++ over the launch's own arguments.

    Products are computed in 64 bits, ``min`` and ``max`` too, so that they don't overflow where Python
    wouldn't. ``constants`` (from :func:`repeated`) are written by their names.
    Raises :class:`BadInput` for anything that is not in the language, naming it.
    """
    tree = parse(expression)
    return _Writer(expression, scope, constants or {}, signed=_subtracts(tree)).write(tree).text


def repeated(expression: str) -> tuple[str, ...]:
    """Subexpressions of numbers and sizes alone that stand more than once in it, the largest only."""
    tree = parse(expression)
    found = Counter(ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.BinOp) and _constant(node))
    several = [text for text, count in found.items() if count > 1 and "sizeof" in text]
    return tuple(text for text in several if not any(text in other and text != other for other in several))


def parse(expression: str) -> ast.expr:
    """The syntax tree of ``expression``; raises :class:`BadInput` where it is none."""
    python = expression.replace("&&", " and ").replace("||", " or ")
    python = re.sub(r"!(?!=)", " not ", python)
    try:
        return ast.parse(python.strip(), mode="eval").body
    except SyntaxError as error:
        raise BadInput(
            f"{expression!r} is not an expression: {error.msg}", "Use names, numbers and + - * / %"
        ) from error


def is_primary(text: str) -> bool:
    """Whether ``text`` can stand beside any operator: a name, number, member access or call."""
    if re.fullmatch(r"[\w.:]+", text):
        return True
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth == 0 and place + 1 < len(text) and not re.match(r"[\w.:(\[)\]]", character):
            return False
    return depth == 0 and re.match(r"[\w.:(]", text) is not None


def _subtracts(tree: ast.expr) -> bool:
    return any(isinstance(node, ast.Sub | ast.USub) for node in ast.walk(tree))


def _constant(node: ast.expr) -> bool:
    """Whether a tree is made of numbers and ``sizeof`` alone."""
    match node:
        case ast.Constant():
            return True
        case ast.BinOp(left=left, right=right):
            return _constant(left) and _constant(right)
        case ast.Call(func=ast.Name(id="sizeof")):
            return True
        case ast.Call(func=ast.Name(id="min" | "max"), args=arguments):
            return all(map(_constant, arguments))
    return False


class _Writer:
    """C++ of each node of one expression."""

    def __init__(self, expression: str, scope: Scope, constants: Mapping[str, str], signed: bool) -> None:
        self._expression = expression
        self._scope = scope
        self._constants = constants
        self._signed = signed

    def write(self, node: ast.expr) -> Cpp:
        if self._constants and (name := self._constants.get(ast.unparse(node))):
            return Cpp(name, _PRIMARY, wide=True)
        match node:
            case ast.Constant(value=bool() as value):
                return Cpp("true" if value else "false", _PRIMARY)
            case ast.Constant(value=int() as value):
                return Cpp(str(value), _PRIMARY)
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._binary(left, *_BINARY[type(op)], right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                negated = self.write(operand)
                return Cpp(f"-{negated.at(_UNARY)}", _UNARY, negated.wide)
            case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
                return self._call(function, arguments)
        return self._condition(node)

    def _condition(self, node: ast.expr) -> Cpp:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Cpp(f"!{self.write(operand).at(_PRIMARY)}", _UNARY)
            case ast.BoolOp(op=op, values=values):
                parts = [(value, self.write(value)) for value in values]
                # Comparisons bind tighter than && and ||; only a condition inside a condition gets brackets.
                texts = [f"({cpp.text})" if isinstance(value, ast.BoolOp) else cpp.text for value, cpp in parts]
                return Cpp((" && " if isinstance(op, ast.And) else " || ").join(texts), _LOOSEST)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return Cpp(f"{self.write(left).at(1)} {_COMPARE[type(op)]} {self.write(right).at(1)}", _LOOSEST)
        raise BadInput(f"{ast.unparse(node)!r} in {self._expression!r} can't be turned into C++", _LANGUAGE)

    def _name(self, name: str) -> Cpp:
        if name not in self._scope.values:
            known = ", ".join(sorted(self._scope.values))
            raise BadInput(f"{name!r} in {self._expression!r} is not known at the launch", f"Known are: {known}")
        text = self._scope.values[name]
        return Cpp(text, _PRIMARY if is_primary(text) else _LOOSEST)

    def _binary(self, left: ast.expr, sign: str, level: int, right: ast.expr) -> Cpp:
        first, second = self.write(left), self.write(right)
        text = first.at(level)
        narrow = not (first.wide or second.wide or isinstance(left, ast.Constant) or isinstance(right, ast.Constant))
        # A product of two ints may overflow, a difference of two unsigned numbers may turn around.
        widened = (sign == "*" and narrow) or (sign == "-" and not first.wide)
        if widened and not isinstance(left, ast.Constant):
            text = f"static_cast<int64_t>({first.text})"
        wide = first.wide or second.wide or widened
        return Cpp(f"{text} {sign} {second.at(level + 1)}", level, wide)

    def _call(self, function: str, arguments: list[ast.expr]) -> Cpp:
        match function, arguments:
            case "min" | "max", [first, *rest] if rest:
                text = self.write(first).text
                for other in rest:
                    text = f"std::{function}<int64_t>({text}, {self.write(other).text})"
                return Cpp(text, _PRIMARY, wide=True)
            case "ceil_div", [total, ast.Constant(value=int() as part)]:
                value = self.write(total)
                return Cpp(f"({value.at(1)} + {part - 1}) / {part}", 2, value.wide)
            case "ceil_div", [total, part]:
                value, size = self.write(total), self.write(part)
                wide = value.wide or size.wide
                return Cpp(f"({value.at(1)} + {size.at(2)} - 1) / {size.at(_UNARY)}", 2, wide)
            case "sizeof", [ast.Name(id=name)] if name in self._scope.types:
                size_of = f"sizeof({self._scope.types[name]})"
                # sizeof is unsigned: beside a subtraction it would turn negative numbers into huge ones.
                return Cpp(f"static_cast<int64_t>({size_of})" if self._signed else size_of, _PRIMARY, wide=True)
            case "aligned", [pointer, size]:
                address = f"reinterpret_cast<uintptr_t>({self.write(pointer).text})"
                return Cpp(f"{address} % {self.write(size).at(_UNARY)} == 0", _LOOSEST)
        call = f"{function}({', '.join(ast.unparse(argument) for argument in arguments)})"
        types = ", ".join(sorted(self._scope.types)) or "none"
        raise BadInput(
            f"{call!r} in {self._expression!r} can't be turned into C++", f"{_LANGUAGE}; types known: {types}"
        )
