"""What an op is run on, and how its outputs are judged."""

from __future__ import annotations

from typing import Literal

from .base import Record

DType = Literal["float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "uint8", "int32", "int64", "bool"]


class TensorArgument(Record):
    """A tensor: ``shape`` in elements, ``strides`` in elements (None: contiguous).

    ``values`` names a generator of :mod:`astra_integrate.measure.values`, for example
    ``normal(2)``, ``uniform(-1,1)``, ``index(100)``, ``zeros``, ``special`` (inf, NaN, extremes).
    ``offset`` is the distance in elements of the first element from a 256-byte boundary.
    """

    kind: Literal["tensor"] = "tensor"
    name: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    offset: int = 0
    role: Literal["in", "out", "inout"]
    values: str = "normal(1)"


class ScalarArgument(Record):
    """A number, flag, string or None handed to the op by value."""

    kind: Literal["scalar"] = "scalar"
    name: str
    value: float | int | bool | str | None


Argument = TensorArgument | ScalarArgument


class Comparator(Record):
    """How one output is judged: ``bits`` (equal bytes) or ``error`` (against an fp64 oracle)."""

    output: str
    how: Literal["bits", "error"]


class Workload(Record):
    """One call of an op as data; ``seed`` makes its values reproducible.

    ``tail_rows`` > 0: only the last rows (of the first dimension) are filled, computed and compared,
    so that a row offset beyond 32 bits can be tried without computing billions of elements.
    """

    id: str
    op: str
    arguments: tuple[Argument, ...]
    comparators: tuple[Comparator, ...]
    weight: float = 1.0
    role: Literal["representative", "edge"]
    seed: int
    oracle: str | None = None
    source: str = ""
    tail_rows: int = 0
