"""Is an output right? Error against an fp64 reference, with the unmodified op's own error as the measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records import Comparator, OutputError, TensorArgument
from .oracle import rounded
from .values import Array, is_float, poison_byte, ulp

# Below this part of the typical magnitude an error counts as absolute: next to zero, relative error says nothing.
_FLOOR = 2.0**-8
# torch.testing.assert_close allows 1.3e-6 for float32, which frameworks' own tests use; one unit in the
# last place (1.2e-7) would forbid any other order of a sum.
_FLOAT32 = 1.3e-6


@dataclass(frozen=True)
class Judgement:
    """The figures of one output, and in words what is wrong with it (empty: nothing)."""

    error: OutputError
    fault: str = ""


def judge(
    argument: TensorArgument,
    comparator: Comparator,
    got: Array,
    baseline: Array,
    oracle: Any | None,
) -> Judgement:
    """Compare ``got`` with the reference.

    Args:
        argument: the output.
        comparator: ``bits`` or ``error``.
        got: the candidate's values, in the output's dtype.
        baseline: the unmodified op's.
        oracle: fp64 values; None makes the baseline the reference.

    NaN must meet NaN and each infinity itself. Where the baseline's own kind of value (finite, NaN, inf)
    differs from the oracle's, either is accepted.
    """
    reference = np.asarray(baseline if oracle is None else oracle)
    if np.shape(reference) != got.shape:
        reference = np.broadcast_to(reference, got.shape)
    if comparator.how == "bits":
        return _bits(argument, got, baseline, reference, oracle is not None)
    return _error(argument, got, baseline, reference.astype(np.float64), oracle is None)


def distance(argument: TensorArgument, baseline: Array, oracle: Any | None) -> float:
    """Euclidean norm of the error over that of the oracle (finite values); 0 without an oracle or for integers."""
    if oracle is None or not is_float(argument.dtype) or not baseline.size:
        return 0.0
    own, wanted = baseline.astype(np.float64), np.broadcast_to(np.asarray(oracle, dtype=np.float64), baseline.shape)
    finite = np.isfinite(own) & np.isfinite(wanted)
    whole = float(np.linalg.norm(wanted[finite]))
    return float(np.linalg.norm((own - wanted)[finite])) / whole if whole else 0.0


def dummies(argument: TensorArgument, given: Mapping[str, Array], other: Array) -> dict[str, Array]:
    """Outputs that no right comparison may pass: zeros, poison, a copy of an input, another call's result."""
    raw = np.full(other.nbytes, poison_byte(argument.dtype), dtype=np.uint8)
    made = {
        "zeros": np.zeros_like(other),
        "poison": raw.view(other.dtype).reshape(other.shape),
        "another call's": other,
    }
    for name, values in given.items():
        if values.dtype == other.dtype and values.size >= other.size:
            made[f"a copy of {name}"] = values.reshape(-1)[: other.size].reshape(other.shape)
    return made


def _bits(argument: TensorArgument, got: Array, baseline: Array, reference: Array, has_oracle: bool) -> Judgement:
    wanted = reference.astype(got.dtype) if has_oracle else baseline
    wrong = _raw(got) != _raw(wanted)
    count = int(wrong.any(axis=-1).sum())
    own = int((_raw(baseline) != _raw(wanted)).any(axis=-1).sum())
    limit = 0 if not has_oracle else own
    error = OutputError(
        output=argument.name, candidate=count, baseline=own, limit=limit, mismatches=max(0, count - limit)
    )
    if count <= limit:
        return Judgement(error)
    return Judgement(error, _tell(argument, got, wrong.any(axis=-1).reshape(got.shape), wanted, "bits"))


def _error(argument: TensorArgument, got: Array, baseline: Array, oracle: Array, differential: bool) -> Judgement:
    if not got.size:
        return Judgement(OutputError(output=argument.name, candidate=0.0, baseline=0.0, limit=0.0))
    value, own = got.astype(np.float64), baseline.astype(np.float64)
    wanted = rounded(oracle, argument.dtype) if is_float(argument.dtype) else oracle
    same = _kind(value) == _kind(wanted)
    excused = _kind(own) != _kind(wanted)
    # Where the unmodified op itself isn't of the oracle's kind, its own value is as good.
    with np.errstate(all="ignore"):
        like_baseline = (_kind(value) == _kind(own)) & (
            ~np.isfinite(own) | (np.abs(value - own) <= 2 * base(argument) * np.abs(own))
        )
    finite = np.isfinite(wanted) & np.isfinite(value)
    scale = _scale(argument, oracle)
    with np.errstate(all="ignore"):
        error = np.where(finite, np.abs(value - oracle) / scale, 0.0)
        own_error = np.where(np.isfinite(wanted) & np.isfinite(own), np.abs(own - oracle) / scale, 0.0)
    allowed = _allowed(argument, own_error, scale, differential)
    wrong = np.where(same, finite & (error > allowed), ~(excused & like_baseline))
    mean_limit = max(2 * float(np.sqrt(np.mean(own_error**2))), base(argument) / 2)
    mean = float(np.sqrt(np.mean(np.where(wrong, 0.0, error) ** 2)))
    worst = int(np.argmax(np.where(finite, error / allowed, 0.0)))
    figures = OutputError(
        output=argument.name,
        candidate=float(error.flat[worst]),
        baseline=float(own_error.max()),
        limit=float(allowed.flat[worst]),
        mismatches=int(wrong.sum()),
    )
    if wrong.any():
        return Judgement(figures, _tell(argument, got, wrong, oracle, f"relative error {error[wrong].max():.2g}"))
    if mean > mean_limit and not differential:
        figures = figures.model_copy(update={"candidate": mean, "limit": mean_limit, "mismatches": got.size})
        return Judgement(
            figures, f"{argument.name}: mean error {mean:.2g}, where {mean_limit:.2g} is allowed: reduced precision"
        )
    return Judgement(figures)


def base(argument: TensorArgument) -> float:
    """The error (relative) that any right computation may have: one unit in the last place; see ``_FLOAT32``."""
    if argument.dtype == "float32":
        return _FLOAT32
    return ulp(argument.dtype) or 1.0


def _scale(argument: TensorArgument, oracle: Array) -> Array:
    if not is_float(argument.dtype):
        return np.ones_like(oracle)
    size = np.abs(oracle)
    typical = size[np.isfinite(size) & (size > 0)]
    floor = float(np.median(typical)) * _FLOOR if typical.size else 1.0
    smallest = {"float8_e4m3fn": 2.0**-6, "float16": 2.0**-14}.get(argument.dtype, 2.0**-126)
    return np.maximum(np.where(np.isfinite(size), size, 1.0), max(floor, smallest))


def _allowed(argument: TensorArgument, own_error: Array, scale: Array, differential: bool) -> Array:
    """Twice the baseline's largest error among values of about the same magnitude (a factor of 2 up or down)."""
    if differential:
        return np.full(scale.shape, 2 * base(argument))
    octave = np.floor(np.log2(scale)).astype(np.int64)
    octave -= octave.min()
    largest = np.zeros(int(octave.max()) + 3)
    np.maximum.at(largest, octave.reshape(-1) + 1, own_error.reshape(-1))
    around = np.maximum(np.maximum(largest[:-2], largest[1:-1]), largest[2:])
    allowed: Array = np.maximum(2 * around[octave], base(argument))
    return allowed


def _kind(values: Array) -> NDArray[np.int8]:
    """0 finite, 1 NaN, 2 +inf, 3 −inf."""
    kinds = np.zeros(values.shape, dtype=np.int8)
    kinds[np.isnan(values)] = 1
    kinds[np.isposinf(values)] = 2
    kinds[np.isneginf(values)] = 3
    return kinds


def _raw(values: Array) -> NDArray[np.uint8]:
    return np.ascontiguousarray(values).view(np.uint8).reshape(values.size, values.dtype.itemsize)


def _tell(argument: TensorArgument, got: Array, wrong: Array, wanted: Array, how: str) -> str:
    count = int(wrong.sum())
    unwritten = int((_raw(got) == poison_byte(argument.dtype)).all(axis=-1).reshape(got.shape)[wrong].sum())
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f"{count} of {got.size} places (first at {list(place)})"
    if argument.role == "out" and unwritten > count / 2:
        return f"{argument.name}: output not written at {where}"
    if count == got.size and not np.any(got.astype(np.float64)):
        return f"{argument.name}: all zeros"
    return (
        f"{argument.name}: wrong at {where}: {float(got[place]):.6g} where {float(wanted[place]):.6g} is right; {how}"
    )
