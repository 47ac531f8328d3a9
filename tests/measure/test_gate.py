"""The gate over own ops, and over unmodified ops of the frameworks."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate import frameworks
from astra_integrate.errors import BadInput, NotMeasured
from astra_integrate.extract.slicing import make_slice
from astra_integrate.measure.gate import check, check_text
from astra_integrate.measure.workloads import workloads_for
from astra_integrate.records import Workload
from tests.measure.own_ops import one_kernel, op, tensor, workload

BASELINE = one_kernel("for (int i = threadIdx.x; i < n; i += 32) out[i] = in[i] * 2.f + 1.f;")
ORACLE = "out = input * 2 + 1"


def io(n=96, **more):
    return workload(tensor("out", "out", n), tensor("input", "in", n), oracle=more.pop("oracle", ORACLE), **more)


@pytest.fixture
def judged(emulator_settings, host_toolchain):
    def run(candidate, *workloads: Workload, baseline=BASELINE, parameters=2):
        return check_text(op(baseline, parameters), candidate, workloads or (io(),), emulator_settings, host_toolchain)

    return run


def test_unmodified_op_and_an_equal_one_pass(judged):
    for candidate in (BASELINE, BASELINE.replace("in[i] * 2.f + 1.f", "fmaf(in[i], 2.f, 1.f)")):
        found = judged(candidate)
        assert found.verdict == "correct under emulation"
        assert found.detail == "1 workloads in 2 thread orders"
        assert [(r.order, r.verdict, r.oracle) for r in found.results] == [
            ("forward", "correct under emulation", "expression"),
            ("reverse", "correct under emulation", "expression"),
        ]


def test_without_an_oracle_the_unmodified_op_is_the_reference_and_it_says_so(judged):
    found = judged(BASELINE.replace("2.f +", "2.00001f +"), io(oracle=None))
    assert found.verdict == "wrong"
    assert {r.oracle for r in found.results} == {"differential"}
    assert judged(BASELINE, io(oracle=None)).verdict == "correct under emulation"


def test_what_does_not_compile(judged):
    found = judged(BASELINE.replace("2.f +", "2.f + nothing +"))
    assert found.verdict == "does not compile"
    assert "nothing" in found.detail


def test_intrinsic_that_the_emulation_lacks_is_no_fault_of_the_candidate(judged):
    found = judged(BASELINE.replace("2.f +", "2.f + __no_such_intrinsic(n) +"))
    assert (found.verdict, found.detail) == ("not run", "the emulation lacks __no_such_intrinsic")


def test_host_function_that_needs_more_than_the_emulation_has(judged):
    with pytest.raises(NotMeasured, match="can't be emulated: its code needs ncclAllReduce, which the emulation lacks"):
        judged(BASELINE, baseline=BASELINE.replace("int n =", "ncclAllReduce(); int n ="))


def test_edge_at_which_the_unmodified_op_fails_is_told_and_not_held_against_the_candidate(judged):
    baseline = (
        BASELINE.replace("<<<1, 32>>>", "<<<(n + 31) / 32, 32>>>")
        .replace("i = threadIdx.x", "i = blockIdx.x * 32 + threadIdx.x")
        .replace("i += 32", "i += n")
    )
    empty = io(0, id="empty", role="edge")
    found = judged(baseline, io(), empty, baseline=baseline)
    assert found.verdict == "correct under emulation"
    assert "1 edges fail in the unmodified op too (empty)" in found.detail
    guarded = baseline.replace("  k<<<", "  if (n == 0) return;\n  k<<<")
    assert judged(guarded, io(), empty, baseline=baseline).verdict == "correct under emulation"
    broken = judged(baseline, io(), empty, baseline=guarded)
    assert broken.verdict == "crashes"
    assert "invalid configuration" in broken.detail and broken.detail.startswith("empty, forward")


def test_unmodified_op_that_fails_where_it_matters(judged):
    baseline = one_kernel("out[threadIdx.x + n] = in[threadIdx.x];")
    assert judged(BASELINE, baseline=baseline).verdict == "baseline fails"


def test_workload_without_power_is_rejected_by_name(judged):
    work = io(id="all_zero", oracle="out = input * 0")
    baseline = one_kernel("for (int i = threadIdx.x; i < n; i += 32) out[i] = in[i] * 0.f;")
    found = judged(baseline, work, baseline=baseline)
    assert found.verdict == "not run"
    assert "all_zero can't tell right from wrong: zeros would pass as out" in found.detail


def test_oracle_that_is_not_the_ops_is_found(judged):
    found = judged(BASELINE, io(oracle="out = input * 3"))
    assert found.verdict == "not run"
    assert "off its oracle" in found.detail


def test_refusals_must_agree(judged):
    refusing = BASELINE.replace("int n =", 'TORCH_CHECK(input.numel() % 2 == 0, "odd"); int n =')
    odd = io(97, id="odd", role="edge")
    assert judged(refusing, io(), odd, baseline=refusing).verdict == "correct under emulation"
    assert judged(BASELINE, io(), odd, baseline=refusing).verdict == "wrong"
    found = judged(refusing, io(), odd)
    assert found.verdict == "crashes" and "odd" in found.detail


def test_no_workloads(judged, emulator_settings, host_toolchain):
    with pytest.raises(BadInput):
        check_text(op(BASELINE, 2), BASELINE, (), emulator_settings, host_toolchain)


def test_workload_that_does_not_fit_the_signature(judged):
    with pytest.raises(NotMeasured, match="takes 3 arguments here, its workloads give 2"):
        judged(BASELINE, parameters=3)


REAL = ["silu_and_mul", "fused_add_rms_norm", "merge_attn_states", "rotary_embedding"]


@pytest.mark.network
@pytest.mark.parametrize("release", ["vllm_0_12", "vllm_0_33"])
@pytest.mark.parametrize("name", REAL)
def test_unmodified_ops_of_the_framework_meet_their_oracles(request, settings_, toolchain, release, name):
    source = request.getfixturevalue(release)
    target = frameworks.get(source.framework).find(Path(source.root), name)[0]
    slice_ = make_slice(source, target, settings_, toolchain)
    found = check(slice_, None, workloads_for(source.framework, name), settings_, toolchain)
    assert found.verdict == "correct under emulation", found.detail
    representative = {w.id for w in workloads_for(source.framework, name) if w.role == "representative"}
    for result in found.results:
        if result.workload in representative:
            assert result.verdict == "correct under emulation", result
            assert result.errors and all(error.mismatches == 0 for error in result.errors), result
