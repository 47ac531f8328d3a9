"""Expressions of a launch plan, turned into C++ for one launch site.

The language is what C++ and Python have in common: names, numbers, ``+ - * / %``, comparisons,
``and or not`` (or ``&& || !``), ``min``, ``max``, ``ceil_div``, ``sizeof(T)`` and ``aligned(pointer, bytes)``.
``/`` is division of whole numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from astra_integrate.errors import BadInput

_BINARY = {ast.Add: ("+", 1), ast.Sub: ("-", 1), ast.Mult: ("*", 2), ast.Div: ("/", 2), ast.FloorDiv: ("/", 2)}
_BINARY[ast.Mod] = ("%", 2)
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_LOOSEST, _UNARY, _PRIMARY = 0, 3, 4


@dataclass(frozen=True)
class Scope:
    """What names mean at a launch: ``values`` (parameter, ``grid_x``, ``block_x``) and ``types`` as C++ text."""

    values: Mapping[str, str]
    types: Mapping[str, str]


def to_cpp(expression: str, scope: Scope) -> str:
    """``expression`` as C++ over the launch's own arguments.

    Products of two names are computed in 64 bits, ``min`` and ``max`` too, so that they don't overflow
    where Python wouldn't. Raises :class:`BadInput` for anything that is not in the language, naming it.
    """
    tree = parse(expression)
    return _Writer(expression, scope, signed=_subtracts(tree)).write(tree)[0]


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


def _subtracts(tree: ast.expr) -> bool:
    return any(isinstance(node, ast.Sub | ast.USub) for node in ast.walk(tree))


class _Writer:
    """Text and precedence of each node."""

    def __init__(self, expression: str, scope: Scope, signed: bool) -> None:
        self._expression = expression
        self._scope = scope
        self._signed = signed

    def write(self, node: ast.expr) -> tuple[str, int]:
        match node:
            case ast.Constant(value=bool() as value):
                return ("true" if value else "false"), _PRIMARY
            case ast.Constant(value=int() as value):
                return str(value), _PRIMARY
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._binary(left, *_BINARY[type(op)], right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self._at(operand, _UNARY)}", _UNARY
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self._at(operand, _PRIMARY)}", _UNARY
            case ast.BoolOp(op=op, values=values):
                sign = " && " if isinstance(op, ast.And) else " || "
                return sign.join(self._part(value) for value in values), _LOOSEST
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return f"{self._at(left, 1)} {_COMPARE[type(op)]} {self._at(right, 1)}", _LOOSEST
            case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
                return self._call(function, arguments)
        raise BadInput(f"{ast.unparse(node)!r} in {self._expression!r} can't be turned into C++", _LANGUAGE)

    def _at(self, node: ast.expr, least: int) -> str:
        text, level = self.write(node)
        return f"({text})" if level < least else text

    def _part(self, node: ast.expr) -> str:
        """An operand of ``&&`` or ``||``: comparisons need no brackets, other conditions get them."""
        text, _ = self.write(node)
        return f"({text})" if isinstance(node, ast.BoolOp) else text

    def _name(self, name: str) -> tuple[str, int]:
        if name not in self._scope.values:
            known = ", ".join(sorted(self._scope.values))
            raise BadInput(f"{name!r} in {self._expression!r} is not known at the launch", f"Known are: {known}")
        text = self._scope.values[name]
        return text, _PRIMARY if is_primary(text) else _LOOSEST

    def _binary(self, left: ast.expr, sign: str, level: int, right: ast.expr) -> tuple[str, int]:
        first = self._at(left, level)
        if sign == "*" and not isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
            first = f"static_cast<int64_t>({self.write(left)[0]})"
        return f"{first} {sign} {self._at(right, level + 1)}", level

    def _call(self, function: str, arguments: list[ast.expr]) -> tuple[str, int]:
        match function, arguments:
            case "min" | "max", [first, *rest] if rest:
                text = self.write(first)[0]
                for other in rest:
                    text = f"std::{function}<int64_t>({text}, {self.write(other)[0]})"
                return text, _PRIMARY
            case "ceil_div", [total, ast.Constant(value=int() as part)]:
                return f"({self._at(total, 1)} + {part - 1}) / {part}", 2
            case "ceil_div", [total, part]:
                size = self._at(part, 2)
                return f"({self._at(total, 1)} + {size} - 1) / {self._at(part, _UNARY)}", 2
            case "sizeof", [ast.Name(id=name)] if name in self._scope.types:
                size = f"sizeof({self._scope.types[name]})"
                # sizeof is unsigned: beside a subtraction it would turn negative numbers into huge ones.
                return (f"static_cast<int64_t>({size})" if self._signed else size), _PRIMARY
            case "aligned", [pointer, size]:
                return (
                    f"reinterpret_cast<uintptr_t>({self.write(pointer)[0]}) % {self._at(size, _UNARY)} == 0",
                    _LOOSEST,
                )
        call = f"{function}({', '.join(ast.unparse(argument) for argument in arguments)})"
        types = ", ".join(sorted(self._scope.types)) or "none"
        raise BadInput(
            f"{call!r} in {self._expression!r} can't be turned into C++", f"{_LANGUAGE}; types known: {types}"
        )


_LANGUAGE = "Plans may use + - * / %, comparisons, and, or, not, min, max, ceil_div, sizeof and aligned"


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
