"""Workloads out of the frameworks' op data: ``frameworks/<name>_ops.toml``.

An op's table holds ``args`` (in schema order), ``dims`` (one entry a workload), an optional ``oracle``
and the ``source`` of its figures. A tensor argument is
``name = "role shape values"``, for example ``"in [t, 2*d] normal(1)"``; a scalar is ``name = 0.5``.
Shapes are expressions over the dims; a stride list may follow the shape: ``"in [t, d]/[2*d, 1]"``.
A ``dims`` entry may set ``dtype``, ``role`` (``edge``), ``values``, ``offset`` (elements), ``strides``,
``tail`` (only that many last rows are run) and any scalar.
"""

from __future__ import annotations

import ast
import operator
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ..errors import BadInput, NotMeasured
from ..records import Argument, Comparator, DType, ScalarArgument, TensorArgument, Workload, digest_of
from .values import is_float

Role = Literal["in", "out", "inout"]
FRAMEWORKS = Path(__file__).parent.parent / "frameworks"
_TENSOR = re.compile(
    r"^(?P<role>in|out|inout)(?P<type>:\w+)?\s+\[(?P<shape>[^\]]*)\](?:/\[(?P<strides>[^\]]*)\])?\s*(?P<values>.*)$"
)
_RESERVED = frozenset({"dtype", "role", "values", "offset", "weight", "strides", "note", "tail"})
_FULL_ROWS = 16


def workloads_for(
    framework: str, op: str, *, size: Literal["emulated", "full"] = "emulated", data: Path | None = None
) -> tuple[Workload, ...]:
    """Representative workloads first, then edges, in the order of the data.

    ``size="full"`` multiplies the rows of the representative ones, for a GPU.
    Raises :class:`NotMeasured` when the data hold nothing about ``op``, :class:`BadInput` when they are wrong.
    """
    path = data or FRAMEWORKS / f"{framework}_ops.toml"
    table = _load(path) if path.is_file() else {}
    if op not in table:
        raise NotMeasured(
            f"No workloads for {op!r} of {framework}: its arguments are not described", f"Describe it in {path.name}"
        )
    entry = table[op]
    made = [_workload(op, entry, dims, dtype, size) for dims in entry["dims"] for dtype in _dtypes(entry, dims)]
    return tuple(sorted(made, key=lambda w: w.role == "edge"))


def ops_with_workloads(framework: str) -> tuple[str, ...]:
    """The ops that the data describe, sorted."""
    path = FRAMEWORKS / f"{framework}_ops.toml"
    return tuple(sorted(_load(path))) if path.is_file() else ()


@cache
def _load(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path.name} is not valid TOML: {error}") from error
    shared = document.get("shared", {})
    ops: dict[str, Any] = {}
    for name, entry in document.get("op", {}).items():
        whole = {**entry, "dims": [*shared.get(entry.get("rows", ""), ()), *entry.get("dims", ())]}
        if not whole["dims"] or "args" not in whole:
            raise BadInput(f"{path.name}: op {name!r} needs args and dims")
        ops[name] = whole
    return ops


def _dtypes(entry: dict[str, Any], dims: dict[str, Any]) -> tuple[str, ...]:
    chosen = dims.get("dtype", entry.get("dtypes", ["bfloat16"]))
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)


def _workload(op: str, entry: dict[str, Any], dims: dict[str, Any], dtype: str, size: str) -> Workload:
    numbers = {name: value for name, value in dims.items() if name not in _RESERVED}
    role = cast(Literal["representative", "edge"], dims.get("role", "representative"))
    if size == "full" and role == "representative" and "t" in numbers:
        numbers["t"] *= _FULL_ROWS
    arguments = tuple(_argument(name, spec, numbers, dims, dtype) for name, spec in entry["args"].items())
    shown = "_".join(f"{name}{value}" for name, value in numbers.items())
    extra = "_".join(str(dims[key]) for key in ("note",) if key in dims)
    outputs = [a for a in arguments if isinstance(a, TensorArgument) and a.role != "in"]
    return Workload(
        id="-".join(part for part in (shown, dtype, extra) if part),
        op=op,
        arguments=arguments,
        comparators=tuple(
            Comparator(output=a.name, how="error" if is_float(a.dtype) or entry.get("integers") == "close" else "bits")
            for a in outputs
        ),
        weight=float(dims.get("weight", 1.0)),
        role=role,
        seed=int(digest_of(f"{op}/{shown}/{dtype}/{extra}")[:8], 16),
        oracle=entry.get("oracle"),
        source=entry.get("source", ""),
        tail_rows=int(dims.get("tail", 0)),
    )


def _argument(name: str, spec: Any, numbers: dict[str, Any], dims: dict[str, Any], dtype: str) -> Argument:
    if isinstance(spec, str) and spec == "none":
        return ScalarArgument(name=name, value=None)
    found = _TENSOR.match(spec) if isinstance(spec, str) else None
    if found is None:
        return ScalarArgument(name=name, value=numbers.get(name, spec))
    kind = (found["type"] or f":{dtype}")[1:]
    if kind not in get_args(DType):
        raise BadInput(f"Unknown dtype {kind!r} of argument {name}")
    shape = _numbers(found["shape"], numbers)
    strides = _numbers(found["strides"], numbers) if found["strides"] else None
    override = dims.get("values", {})
    offsets = dims.get("offset", {})
    layout = dims.get("strides", {}).get(name)
    return TensorArgument(
        name=name,
        dtype=cast(DType, kind),
        shape=shape,
        strides=_numbers(layout, numbers) if layout else strides,
        offset=int(offsets.get(name, 0)) if isinstance(offsets, dict) else int(offsets),
        role=cast(Role, found["role"]),
        values=override.get(name, found["values"].strip() or "normal(1)"),
    )


def _numbers(text: str, names: dict[str, Any]) -> tuple[int, ...]:
    return tuple(_number(part, names) for part in text.split(",") if part.strip())


_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _number(text: str, names: dict[str, Any]) -> int:
    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and isinstance(names.get(node.id), int):
            return int(names[node.id])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return int(_OPERATORS[type(node.op)](value(node.left), value(node.right)))
        raise BadInput(f"{text!r} in the op data is no size over {', '.join(names)}")

    try:
        return value(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise BadInput(f"{text!r} in the op data is no size") from error
