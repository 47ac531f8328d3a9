"""Reference values in double precision, from expressions that are data.

An oracle is a few assignments, one a line or separated by ``;``; each name that an output has is that
output's reference, any other name a step on the way. Arrays come in as float64 (integers as int64).
Only arithmetic, comparisons, indexing and the functions of this file are understood: nothing is executed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from .values import is_float, largest, numpy_dtype

Array = NDArray[Any]


def evaluate(text: str, arguments: Mapping[str, Any], dtypes: Mapping[str, str]) -> dict[str, Any]:
    """Every name that ``text`` assigns, as arrays.

    Args:
        text: the oracle.
        arguments: name → array, number, flag, string or None.
        dtypes: name of a tensor → its dtype; what ``cast(x, name)`` rounds to.

    Raises:
        BadInput: the text isn't an oracle, or names something unknown.
    """
    try:
        tree = ast.parse("\n".join(part.strip() for part in text.replace("\n", ";").split(";")))
    except SyntaxError as error:
        raise BadInput(f"The oracle {text!r} is not an expression: {error}") from error
    names: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "pi": math.pi, **arguments}
    made: dict[str, Any] = {}
    # Non-finite inputs are part of the test: numpy's warnings about them say nothing.
    with np.errstate(all="ignore"):
        for statement in tree.body:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                raise BadInput(f"The oracle {text!r} may hold assignments only")
            value = _Evaluator(names, dtypes).value(statement.value)
            names[statement.targets[0].id] = made[statement.targets[0].id] = value
    return made


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class _Evaluator:
    """Walks one expression; a node that isn't listed is refused."""

    def __init__(self, names: Mapping[str, Any], dtypes: Mapping[str, str]) -> None:
        self._names = names
        self._dtypes = dtypes

    def value(self, node: ast.expr) -> Any:
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise BadInput(f"An oracle can't use {ast.unparse(node)!r}")
        return handler(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            raise BadInput(f"The oracle names {node.id!r}, which is no argument and no step")
        return self._names[node.id]

    def _binop(self, node: ast.BinOp) -> Any:
        return self._operator(_BINARY, node.op, node)(self.value(node.left), self.value(node.right))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return self._operator(_UNARY, node.op, node)(self.value(node.operand))

    def _compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            raise BadInput(f"An oracle can't chain comparisons: {ast.unparse(node)!r}")
        return self._operator(_COMPARE, node.ops[0], node)(self.value(node.left), self.value(node.comparators[0]))

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        return self.value(node.value)[self._index(node.slice)]

    def _call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise BadInput(f"An oracle can't call {ast.unparse(node)!r}")
        if node.func.id == "cast":
            return self._cast(node)
        function = FUNCTIONS.get(node.func.id)
        if function is None:
            raise BadInput(f"An oracle can't call {node.func.id!r}", f"Use one of {', '.join(sorted(FUNCTIONS))}")
        return function(*(self.value(argument) for argument in node.args))

    def _cast(self, node: ast.Call) -> Any:
        target = node.args[1]
        if not isinstance(target, ast.Name) or target.id not in self._dtypes:
            raise BadInput(f"cast() rounds to the dtype of a tensor argument: {ast.unparse(node)!r}")
        return rounded(self.value(node.args[0]), self._dtypes[target.id])

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(part) for part in node.elts)
        if isinstance(node, ast.Slice):
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if part is None else self.value(part) for part in parts))
        return self.value(node)

    def _operator(self, table: Mapping[Any, Any], kind: object, node: ast.expr) -> Any:
        found = table.get(type(kind))
        if found is None:
            raise BadInput(f"An oracle can't use {ast.unparse(node)!r}")
        return found


def rounded(values: Any, dtype: str) -> Any:
    """``values`` rounded to a dtype and back to float64 (integers: to nearest, ties to even)."""
    array = np.asarray(values, dtype=np.float64)
    if not is_float(dtype):
        return np.rint(array)
    if dtype == "float8_e4m3fn":
        # Hardware conversion saturates; numpy's gives NaN beyond the largest value.
        array = np.clip(array, -largest(dtype), largest(dtype))
    with np.errstate(all="ignore"):
        return array.astype(numpy_dtype(dtype)).astype(np.float64)


_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(x: Array) -> Array:
    """The error function, element by element."""
    return np.asarray(_erf(x)) if np.size(x) else np.zeros(np.shape(x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)); 0 and 1 far out."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _last(function: Callable[..., Any]) -> Callable[[Array], Any]:
    return lambda x: function(x, axis=-1, keepdims=True) if x.shape[-1] else np.zeros((*x.shape[:-1], 1))


def _rotate(x: Array, cos: Array, sin: Array, neox: bool) -> Array:
    """Rotary embedding of x [..., heads, size] by cos and sin [..., size of rotation / 2]; the rest stays."""
    half = cos.shape[-1]
    cos, sin = cos[..., None, :], sin[..., None, :]
    turned = x[..., : 2 * half]
    first, second = (turned[..., :half], turned[..., half:]) if neox else (turned[..., ::2], turned[..., 1::2])
    left, right = first * cos - second * sin, second * cos + first * sin
    done = np.concatenate((left, right), -1) if neox else np.stack((left, right), -1).reshape(turned.shape)
    return np.concatenate((done, x[..., 2 * half :]), -1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": sigmoid,
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1.0 + erf(x * math.sqrt(0.5))),
    "gelu_tanh": lambda x: 0.5 * x * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "mean": _last(np.mean),
    "sum": _last(np.sum),
    "amax": _last(np.max),
    # The largest of a row, NaN ignored, at least 0: what a kernel's running fmaxf from 0 gives.
    "famax": lambda x: np.fmax.reduce(x, axis=-1, keepdims=True, initial=0.0),
    "size": lambda x, axis: np.shape(x)[int(axis)],
    "count": np.size,
    "maximum": np.maximum,
    "minimum": np.minimum,
    # CUDA's fmin and fmax: a NaN gives way to the other operand.
    "fmax": np.fmax,
    "fmin": np.fmin,
    "where": np.where,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "concatenate": lambda *parts: np.concatenate(parts, axis=-1),
    "reshape": lambda x, *shape: np.reshape(x, tuple(int(s) for s in shape)),
    "transpose": lambda x: np.swapaxes(x, -1, -2),
    "take": lambda x, rows: x[rows.astype(np.int64)],
    "widen": lambda x: x[..., None],
    "repeat": lambda x, n: np.repeat(x, int(n), axis=-1),
    "rotate": _rotate,
    "rint": np.rint,
    "floor": np.floor,
}
