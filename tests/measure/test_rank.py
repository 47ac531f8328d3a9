"""Candidates in order, with reasons."""

from __future__ import annotations

from astra_integrate.measure.rank import LABEL, NO_ADVANTAGE, best, compare, rank
from astra_integrate.records import KernelEvidence, StaticEvidence


def _kernel(name: str = "k<float>", **facts: object) -> KernelEvidence:
    base: dict[str, object] = {
        "symbol": name,
        "name": name,
        "registers": 24,
        "global_loads": ((16, 2),),
        "global_stores": ((16, 1),),
        "calls": 1,
        "special": 4,
        "instructions": 170,
    }
    return KernelEvidence.model_validate({**base, **facts})


def _evidence(*kernels: KernelEvidence) -> StaticEvidence:
    return StaticEvidence(arch="sm_90a", compiler="nvcc", kernels=kernels)


BEFORE = _evidence(_kernel())
WIDE = {
    "name": "k_astra_00000000<float>",
    "global_loads": ((16, 2), (128, 2)),
    "global_stores": ((16, 1), (128, 1)),
    "calls": 9,
    "special": 36,
    "instructions": 600,
}


def _first(**facts: object):  # type: ignore[no-untyped-def]
    return rank(BEFORE, [("c", _evidence(_kernel(**facts)))])[0]


def test_the_label() -> None:
    assert LABEL == "chosen by static evidence, not timed"


def test_wider_accesses_are_an_advantage_though_the_unrolled_code_is_longer() -> None:
    found = _first(**WIDE)
    assert found.advantage
    assert found.reason.startswith("global loads 16→128 bit, global stores 16→128 bit")
    assert "calls" not in found.reason, "as many a byte as before"
    assert found.reason.endswith("registers 24→24, no spills")


def test_a_slow_path_that_is_gone_is_an_advantage() -> None:
    found = _first(calls=0, special=3)
    assert found.advantage and "slow-path calls 1→0" in found.reason


def test_nothing_new_is_no_advantage() -> None:
    found = _first()
    assert not found.advantage and found.reason == f"{NO_ADVANTAGE}: registers 24→24, no spills"
    assert best([found]) is None


def test_spills_outweigh_a_slow_path_and_narrow_accesses_count_against() -> None:
    spilling = _first(calls=0, spill_store_bytes=8, spill_load_bytes=12, local_accesses=5)
    assert not spilling.advantage and "spills 0→20 bytes" in spilling.reason
    assert not _first(global_loads=((8, 2),)).advantage


def test_occupancy_counts_only_where_it_changes() -> None:
    kernels = [_kernel(registers=n) for n in (24, 32, 40, 64, 72)]
    told = [[c.text for c in compare(kernels[0], k) if "occupancy" in c.text or "more than" in c.text] for k in kernels]
    assert told[:3] == [[], [], ["occupancy by registers 64→48 warps"]]
    assert told[3] == ["occupancy by registers 64→32 warps"]
    assert told[4] == ["occupancy by registers 64→28 warps", "more than 64 registers: no block of 1024 threads"]


def test_better_ones_come_first_and_equal_ones_in_the_given_order() -> None:
    both = {**WIDE, "calls": 0, "special": 27}
    named = {"wide": WIDE, "same": {}, "both": both, "again": WIDE, "spills": {**WIDE, "spill_store_bytes": 64}}
    ranked = rank(BEFORE, [(name, _evidence(_kernel(**facts))) for name, facts in named.items()])
    assert [r.candidate for r in ranked] == ["both", "wide", "again", "spills", "same"]
    assert best(ranked) == ranked[0]


def test_kernels_are_paired_by_name_without_marker_and_the_old_one_beside_is_ignored() -> None:
    before = _evidence(_kernel("k<float>"), _kernel("k<half>"))
    after = _evidence(
        _kernel("k<float>"), _kernel(**{**WIDE, "name": "k_astra_12345678<half>"}), _kernel("k_astra_12345678<float>")
    )
    (found,) = rank(before, [("c", after)])
    assert found.advantage and found.reason.endswith("(2 instantiations)")


def test_what_counts_against_any_instantiation_is_said() -> None:
    before = _evidence(_kernel("k<float>"), _kernel("k<half>"))
    after = _evidence(
        _kernel(**{**WIDE, "name": "k_astra_12345678<float>"}),
        _kernel(**{**WIDE, "name": "k_astra_12345678<half>", "spill_store_bytes": 4}),
    )
    assert "spills 0→4 bytes in k<half>" in rank(before, [("c", after)])[0].reason


def test_a_kernel_under_a_new_name_is_compared_by_its_arguments() -> None:
    new = _kernel(**{**WIDE, "name": "k_wide_astra_12345678<float>"})
    assert rank(BEFORE, [("c", _evidence(new))])[0].advantage
    other = _kernel(**{**WIDE, "name": "k_wide_astra_12345678<int>"})
    assert "no counterpart" in rank(BEFORE, [("c", _evidence(other))])[0].reason.replace("has a", "no")


def test_fewer_barriers_by_shuffles() -> None:
    before = _kernel(barriers=9)
    texts = [c.text for c in compare(before, _kernel(barriers=1, shuffles=5)) if c.gain > 0]
    assert texts == ["barriers 9→1 (shuffles 0→5)"]
