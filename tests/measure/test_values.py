from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_integrate.errors import BadInput
from astra_integrate.measure import values
from tests.measure.own_ops import tensor


def test_same_seed_same_values_and_every_run_its_own():
    a = tensor("x", "in", 4, 8, dtype="bfloat16")
    assert values.generate(a, 1).tobytes() == values.generate(a, 1).tobytes()
    assert values.generate(a, 1).tobytes() != values.generate(a, 2).tobytes()
    assert values.generate(a, 1, 0).tobytes() != values.generate(a, 1, 1).tobytes()
    assert values.generate(a, 1).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("named", "holds"),
    [
        ("uniform(2,3)", lambda x: (x >= 2).all() and (x < 3).all()),
        ("index(5)", lambda x: set(np.unique(x)) == {0, 1, 2, 3, 4}),
        ("permutation", lambda x: sorted(x.reshape(-1)) == list(range(x.size))),
        ("zeros", lambda x: not x.any()),
        ("constant(-inf)", lambda x: np.isneginf(x).all()),
        ("lse", lambda x: np.isposinf(x).any() and np.isneginf(x).any() and np.isfinite(x).any()),
        ("cosines", lambda x: np.allclose(x[:, :8] ** 2 + x[:, 8:] ** 2, 1)),
        ("positive(0.01,0.1)", lambda x: (x > 0.009).all() and (x < 0.11).all()),
    ],
)
def test_generators(named, holds):
    assert holds(values.generate(tensor("x", "in", 64, 16, values=named), 7))


def test_special_rows_are_mixed_into_normal_ones():
    x = values.generate(tensor("x", "in", 60, 64, values="special", dtype="float16"), 3).astype(np.float64)
    odd = ~np.isfinite(x).all(axis=1)
    assert np.isnan(x).any() and np.isposinf(x).any() and np.isneginf(x).any()
    assert (x == 65504).any() and ((np.abs(x) > 0) & (np.abs(x) < 2.0**-14)).any() and (x == 0).all(axis=1).any()
    assert odd.sum() < 20


@pytest.mark.parametrize("named", ["gaussian", "normal(a)", "uniform(1,2,3,4)", "normal(1", "__import__('os')"])
def test_wrong_generators_are_bad_input(named):
    with pytest.raises(BadInput):
        values.generate(tensor("x", "in", 4, values=named), 1)


@given(
    st.integers(0, 5), st.integers(1, 6), st.integers(0, 4), st.sampled_from(["float32", "bfloat16", "int8", "bool"])
)
def test_strided_memory_round_trip(rows, width, gap, dtype):
    a = tensor("x", "in", rows, width, dtype=dtype, strides=(width + gap, 1))
    given_values = values.generate(a, 5)
    data = values.to_bytes(a, given_values)
    assert len(data) == values.span_elements(a) * values.numpy_dtype(dtype).itemsize
    assert values.from_bytes(a, data).tobytes() == given_values.tobytes()
    assert values.gaps_intact(a, data)


def test_a_changed_gap_is_seen():
    a = tensor("x", "out", 2, 3, strides=(5, 1))
    data = bytearray(values.to_bytes(a, None))
    assert values.gaps_intact(a, bytes(data))
    data[4 * 4] ^= 1
    assert not values.gaps_intact(a, bytes(data))


def test_poison_is_nan_for_floats():
    a = tensor("x", "out", 4, dtype="float8_e4m3fn")
    assert np.isnan(values.from_bytes(a, values.to_bytes(a, None)).astype(np.float32)).all()


def test_tail_keeps_strides_and_drops_rows():
    a = tensor("x", "in", 1000, 8, strides=(16, 1))
    tail = values.tail_of(a, 2)
    assert (tail.shape, tail.strides) == ((2, 8), (16, 1))
    assert values.tail_of(a, 0) is a
