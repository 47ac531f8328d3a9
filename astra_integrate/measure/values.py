"""Named, deterministic value generators for tensors, and bytes ↔ numpy for every dtype that ops use.

``normal(s)`` normal with deviation s · ``uniform(a,b)`` · ``zeros`` · ``ones`` · ``constant(c)`` ·
``index(n)`` integers 0 … n-1 · ``permutation`` distinct integers · ``special`` normal rows with inf,
NaN, extremes, denormals and zeros mixed in · ``cosines`` half cosines, half sines of angles ·
``lse`` log-sum-exps with ±inf at some places · ``positive(a,b)`` log-uniform.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from ..records import TensorArgument, digest_of

Array = NDArray[Any]

_DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "int8": np.int8,
    "uint8": np.uint8,
    "int32": np.int32,
    "int64": np.int64,
    "bool": np.bool_,
}
_FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3fn")
# Explicit mantissa bits: one unit in the last place of a value in [1, 2) is 2 ** -bits.
_MANTISSA = {"float32": 23, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3}
POISON = {True: 0xFF, False: 0xA5}


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy (or ml_dtypes) type of a dtype name; raises :class:`BadInput` for an unknown one."""
    if dtype not in _DTYPES:
        raise BadInput(f"Unknown dtype {dtype!r}", f"Use one of {', '.join(_DTYPES)}")
    kind: np.dtype[Any] = np.dtype(_DTYPES[dtype])
    return kind


def is_float(dtype: str) -> bool:
    """Whether the dtype has fractions, inf or NaN."""
    return dtype in _FLOATS


def ulp(dtype: str) -> float:
    """Relative size of one unit in the last place of a floating dtype (2**-7 for bfloat16); 0 for integers."""
    return 2.0 ** -_MANTISSA[dtype] if is_float(dtype) else 0.0


def largest(dtype: str) -> float:
    """The largest finite value."""
    return float(_finfo(dtype).max)


def _finfo(dtype: str) -> Any:
    finfo: Any = ml_dtypes.finfo
    return finfo(numpy_dtype(dtype))


def poison_byte(dtype: str) -> int:
    """What memory that nobody wrote holds: NaN for floats, an odd pattern for integers."""
    return POISON[is_float(dtype)]


def generate(argument: TensorArgument, seed: int, run: int = 0) -> Array:
    """The tensor's values (its logical shape), the same for equal arguments; ``run`` gives different ones.

    Raises :class:`BadInput` for an unknown generator or wrong parameters.
    """
    key = digest_of(f"{seed}/{run}/{argument.name}/{argument.values}/{argument.shape}")
    rng = np.random.default_rng(int(key[:16], 16))
    found = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", argument.values)
    if found is None or found[1] not in _GENERATORS:
        raise BadInput(f"Unknown values {argument.values!r} of {argument.name}", f"Use one of {', '.join(_GENERATORS)}")
    try:
        parameters = [float(part) for part in (found[2] or "").split(",") if part.strip()]
        values = _GENERATORS[found[1]](rng, argument, *parameters)
    except (TypeError, ValueError) as error:
        raise BadInput(f"Wrong parameters in values {argument.values!r} of {argument.name}: {error}") from error
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values.astype(numpy_dtype(argument.dtype)))


def strides_of(argument: TensorArgument) -> tuple[int, ...]:
    """Strides in elements, of a contiguous tensor where the argument gives none."""
    if argument.strides is not None:
        return argument.strides
    strides: list[int] = []
    step = 1
    for size in reversed(argument.shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def span_elements(argument: TensorArgument) -> int:
    """Elements of memory from the tensor's first to its last, gaps included; 0 for an empty tensor."""
    if 0 in argument.shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(argument.shape, strides_of(argument), strict=True))


def tail_of(argument: TensorArgument, rows: int) -> TensorArgument:
    """The last ``rows`` of the tensor's first dimension as a tensor of its own (all of it for 0 rows)."""
    if not rows or not argument.shape or argument.shape[0] <= rows:
        return argument
    return argument.model_copy(
        update={"shape": (rows, *argument.shape[1:]), "strides": strides_of(argument), "offset": 0}
    )


def to_bytes(argument: TensorArgument, values: Array | None) -> bytes:
    """The tensor's memory: ``values`` at their strided places, poison in the gaps (everywhere for None)."""
    kind = numpy_dtype(argument.dtype)
    span = span_elements(argument)
    memory = np.full(span * kind.itemsize, poison_byte(argument.dtype), dtype=np.uint8)
    if values is not None and span:
        _view(argument, memory)[...] = values.view(np.uint8).reshape(*argument.shape, kind.itemsize)
    return memory.tobytes()


def from_bytes(argument: TensorArgument, data: bytes) -> Array:
    """The tensor's values out of its memory."""
    kind = numpy_dtype(argument.dtype)
    if not span_elements(argument):
        return np.zeros(argument.shape, dtype=kind)
    memory = np.frombuffer(data, dtype=np.uint8)
    return np.ascontiguousarray(_view(argument, memory)).reshape(-1).view(kind).reshape(argument.shape)


def gaps_intact(argument: TensorArgument, data: bytes) -> bool:
    """Whether the memory between a strided tensor's elements is still poison."""
    if argument.strides is None or not span_elements(argument):
        return True
    memory = np.frombuffer(data, dtype=np.uint8).copy()
    _view(argument, memory)[...] = poison_byte(argument.dtype)
    return bool((memory == poison_byte(argument.dtype)).all())


def _view(argument: TensorArgument, memory: NDArray[np.uint8]) -> NDArray[np.uint8]:
    each = numpy_dtype(argument.dtype).itemsize
    steps = (*(stride * each for stride in strides_of(argument)), 1)
    return np.lib.stride_tricks.as_strided(memory, (*argument.shape, each), steps)


def _normal(rng: np.random.Generator, a: TensorArgument, deviation: float = 1.0) -> Array:
    return rng.standard_normal(a.shape) * deviation


def _uniform(rng: np.random.Generator, a: TensorArgument, low: float = 0.0, high: float = 1.0) -> Array:
    return rng.uniform(low, high, a.shape)


def _positive(rng: np.random.Generator, a: TensorArgument, low: float = 0.01, high: float = 1.0) -> Array:
    return np.exp(rng.uniform(np.log(low), np.log(high), a.shape))


def _index(rng: np.random.Generator, a: TensorArgument, count: float = 1.0) -> Array:
    return rng.integers(0, max(1, int(count)), a.shape)


def _permutation(rng: np.random.Generator, a: TensorArgument) -> Array:
    return rng.permutation(int(np.prod(a.shape))).reshape(a.shape)


def _cosines(rng: np.random.Generator, a: TensorArgument) -> Array:
    half = a.shape[-1] // 2
    angles = rng.uniform(-np.pi, np.pi, (*a.shape[:-1], half))
    return np.concatenate((np.cos(angles), np.sin(angles)), axis=-1)


def _lse(rng: np.random.Generator, a: TensorArgument) -> Array:
    values = rng.standard_normal(a.shape) * 4
    chosen = rng.uniform(0, 1, a.shape)
    return np.where(chosen < 0.1, -np.inf, np.where(chosen > 0.95, np.inf, values))


def _special(rng: np.random.Generator, a: TensorArgument) -> Array:
    values = rng.standard_normal(a.shape)
    if not values.size:
        return values
    peak = largest(a.dtype) if is_float(a.dtype) else 127.0
    tiny = float(_finfo(a.dtype).smallest_subnormal) if is_float(a.dtype) else 0.0
    odd: Sequence[float] = (0.0, -0.0, peak, -peak, np.inf, -np.inf, np.nan, tiny, -tiny, 80.0, -80.0, 20.0, -20.0)
    rows = values.reshape(-1, a.shape[-1] if a.shape else 1)
    # Most rows stay normal: what is special in one must not leak into another.
    for number, row in enumerate(rows):
        if number % 3 == 1:
            row[rng.integers(0, row.size)] = odd[number // 3 % len(odd)]
        elif number % 3 == 2 and number // 3 % 2:
            row[...] = 0.0
    return values


def _full(value: float) -> Callable[..., Array]:
    return lambda rng, a: np.full(a.shape, value)


_GENERATORS: dict[str, Callable[..., Array]] = {
    "normal": _normal,
    "uniform": _uniform,
    "positive": _positive,
    "index": _index,
    "permutation": _permutation,
    "cosines": _cosines,
    "lse": _lse,
    "special": _special,
    "zeros": _full(0.0),
    "ones": _full(1.0),
    "constant": lambda rng, a, value: np.full(a.shape, value),
}
