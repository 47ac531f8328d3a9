"""Static evidence before and after: which kernel goes with which."""

from __future__ import annotations

from astra_integrate.records import KernelEvidence, StaticEvidence
from astra_integrate.report.evidence import compare


def build(**registers: int) -> StaticEvidence:
    kernels = tuple(KernelEvidence(symbol=name, name=name, registers=count) for name, count in registers.items())
    return StaticEvidence(arch="sm_90a", compiler="nvcc", kernels=kernels)


def test_a_marked_copy_goes_with_its_original_and_comes_first() -> None:
    before = build(other=10, scale=20)
    after = build(other=10, scale_astra_0123abcd=40, scale=20, fresh_astra_0123abcd=5)
    found = {item.kernel: item for item in compare(before, after)}
    assert list(found) == ["scale", "fresh", "other"]
    first = found["scale"].rows[0]
    assert (first.fact, first.before, first.after, first.changed) == ("registers per thread", "20", "40", True)
    assert found["fresh"].rows[0].before is None and not found["fresh"].changed
    assert not found["other"].changed


def test_without_a_candidate_there_is_only_before() -> None:
    (only,) = compare(build(scale=20), None)
    assert only.rows[0].after is None and not only.changed
    assert [row.fact for row in only.rows if not row.empty] == ["registers per thread", "instructions"][:1]
    assert compare(None, None) == ()
