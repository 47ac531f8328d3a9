"""The comparison rule on plain arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from astra_integrate.measure.judge import dummies, judge
from astra_integrate.records import Comparator
from tests.measure.own_ops import tensor

ERROR, BITS = Comparator(output="out", how="error"), Comparator(output="out", how="bits")
RNG = np.random.default_rng(0)
ORACLE = RNG.standard_normal((32, 64)) * 3
F32 = tensor("out", "out", 32, 64)
BF16 = tensor("out", "out", 32, 64, dtype="bfloat16")


def bf16(x):
    return np.asarray(x).astype(ml_dtypes.bfloat16)


def test_rounded_result_passes_and_the_figures_are_those_of_rounding():
    found = judge(BF16, ERROR, bf16(ORACLE), bf16(ORACLE), ORACLE)
    assert not found.fault
    assert 2.0**-10 < found.error.baseline <= 2.0**-8 and found.error.mismatches == 0


def test_one_wrong_element_is_found_and_named():
    got = bf16(ORACLE)
    got[3, 17] *= ml_dtypes.bfloat16(1.05)
    found = judge(BF16, ERROR, got, bf16(ORACLE), ORACLE)
    assert "wrong at 1 of 2048 places (first at [3, 17])" in found.fault
    assert found.error.mismatches == 1


def test_limit_follows_the_baselines_own_error():
    baseline = (ORACLE * (1 + 1e-3 * np.sign(RNG.standard_normal(ORACLE.shape)))).astype(np.float32)
    assert not judge(F32, ERROR, (ORACLE * (1 + 1.5e-3)).astype(np.float32), baseline, ORACLE).fault
    assert judge(F32, ERROR, (ORACLE * (1 + 3e-3)).astype(np.float32), baseline, ORACLE).fault
    assert judge(F32, ERROR, (ORACLE * (1 + 1.5e-3)).astype(np.float32), ORACLE.astype(np.float32), ORACLE).fault


def test_large_error_of_small_values_does_not_excuse_large_ones():
    baseline = ORACLE.copy()
    small = np.abs(ORACLE) < 0.05
    baseline[small] *= 1.3
    got = ORACLE.copy()
    got[np.abs(ORACLE) > 2] *= 1.01
    assert judge(F32, ERROR, got.astype(np.float32), baseline.astype(np.float32), ORACLE).fault


def test_reduced_precision_throughout_is_found():
    got = ORACLE.astype(np.float16).astype(np.float32)
    assert judge(F32, ERROR, got, ORACLE.astype(np.float32), ORACLE).fault
    # Each value within the limit, but all of them off.
    got16 = bf16(ORACLE * (1 + 2.0**-8))
    assert "reduced precision" in judge(BF16, ERROR, got16, bf16(ORACLE), ORACLE).fault


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_nonfinite_must_meet_itself(special):
    oracle = ORACLE.copy()
    oracle[0, 0] = special
    right = oracle.astype(np.float32)
    assert not judge(F32, ERROR, right, right, oracle).fault
    for other in {0.0, np.nan, np.inf, -np.inf} - {special}:
        if np.isnan(special) and np.isnan(other):
            continue
        got = right.copy()
        got[0, 0] = other
        assert judge(F32, ERROR, got, right, oracle).fault, other


def test_nan_where_a_number_is_right_is_no_wildcard():
    got = ORACLE.astype(np.float32)
    got[1, 1] = np.nan
    assert judge(F32, ERROR, got, ORACLE.astype(np.float32), ORACLE).fault
    assert judge(F32, ERROR, got, ORACLE.astype(np.float32), None).fault


def test_where_the_baseline_itself_differs_in_kind_either_passes():
    oracle = ORACLE.copy()
    oracle[0, 0] = np.nan
    baseline = ORACLE.astype(np.float32)
    assert not judge(F32, ERROR, baseline, baseline, oracle).fault
    assert not judge(F32, ERROR, oracle.astype(np.float32), baseline, oracle).fault
    got = baseline.copy()
    got[0, 0] = 1e9
    assert judge(F32, ERROR, got, baseline, oracle).fault


def test_unwritten_output_is_told_as_such():
    got = ORACLE.astype(np.float32)
    got[5].view(np.uint8)[...] = 0xFF
    assert (
        "output not written at 64 of 2048 places (first at [5, 0])"
        in judge(F32, ERROR, got, ORACLE.astype(np.float32), ORACLE).fault
    )
    assert judge(F32, ERROR, ORACLE.astype(np.float32) * 0, ORACLE.astype(np.float32), ORACLE).fault == "out: all zeros"


def test_bits():
    index = tensor("out", "out", 4, dtype="int32")
    right = np.array([3, 1, 2, 0], np.int32)
    assert not judge(index, BITS, right, right, None).fault
    assert judge(index, BITS, right[::-1].copy(), right, None).fault


def test_integers_may_differ_by_one_step():
    a = tensor("out", "out", 4, dtype="int8")
    oracle = np.array([1.0, -5.0, 127.0, 0.0])
    assert not judge(a, ERROR, np.array([1, -4, 127, 0], np.int8), oracle.astype(np.int8), oracle).fault
    assert judge(a, ERROR, np.array([1, -3, 127, 0], np.int8), oracle.astype(np.int8), oracle).fault


def test_no_dummy_passes():
    given = {"input": RNG.standard_normal((32, 128)).astype(np.float32)}
    other = RNG.standard_normal((32, 64)).astype(np.float32)
    made = dummies(F32, given, other)
    assert set(made) == {"zeros", "poison", "another call's", "a copy of input"}
    for what, values in made.items():
        assert judge(F32, ERROR, values, ORACLE.astype(np.float32), ORACLE).fault, what
