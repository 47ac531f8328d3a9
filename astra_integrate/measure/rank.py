"""Order correct candidates by static evidence against the unmodified kernels, each with a readable reason.

Compared are access widths and rates per byte that the code moves, never instruction totals: unrolling
and out-of-line slow paths make those larger while the kernel gets faster. This is a guess about
speed and is labelled as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from astra_integrate.measure.evidence import MARKER, unmarked
from astra_integrate.records import KernelEvidence, StaticEvidence

LABEL = "chosen by static evidence, not timed"
NO_ADVANTAGE = "no static advantage"

# Per multiprocessor, the same for compute capability 8.0, 9.0 and 10.0.
_REGISTERS, _WARPS, _LANES = 65536, 64, 32
_LARGEST_BLOCK = 1024
# A rate must change by this factor to count: scheduling alone moves it by less.
_NOTEWORTHY = 1.25
_SPILLS, _LOCAL_MEMORY, _UNSTARTABLE, _CALLS_GONE = -4.0, -2.0, -2.0, 1.5


@dataclass(frozen=True)
class Change:
    """One difference between two builds of a kernel; ``gain`` > 0 speaks for the new one, in powers of two."""

    text: str
    gain: float


@dataclass(frozen=True)
class Ranked:
    """A candidate's place. ``advantage``: it may be chosen; ``reason`` says what speaks for and against it."""

    candidate: str
    score: float
    advantage: bool
    reason: str


def rank(baseline: StaticEvidence, candidates: Iterable[tuple[str, StaticEvidence]]) -> tuple[Ranked, ...]:
    """Candidates (id, evidence), the one with most static evidence for it first; equal ones in the given order.

    A candidate's kernels are compared with the baseline's kernels of the same name and template
    arguments, markers aside; a kernel under a new name with the one of the same template arguments.
    """
    ranked = [_judge(name, baseline, evidence) for name, evidence in candidates]
    return tuple(sorted(ranked, key=lambda r: (not r.advantage, -round(r.score, 6))))


def best(ranked: Sequence[Ranked]) -> Ranked | None:
    """The candidate to put back, or None where none has an advantage."""
    return next((r for r in ranked if r.advantage), None)


def compare(before: KernelEvidence, after: KernelEvidence) -> tuple[Change, ...]:
    """What changed from one build of a kernel to another, the notable first; neutral facts have gain 0."""
    changes = [
        _width("global loads", before.global_loads, after.global_loads),
        _width("global stores", before.global_stores, after.global_stores),
        _calls(before, after),
        _rate("special-function instructions per byte moved", before.special, after.special, before, after, 0.5),
        _rate("atomics per byte moved", before.atomics, after.atomics, before, after, 0.5),
        _barriers(before, after),
        _rate("instructions per byte moved", before.instructions, after.instructions, before, after, 0.25),
        *_registers(before, after),
        _spills(before, after),
        _local_memory(before, after),
        _shared(before, after),
    ]
    return tuple(change for change in changes if change is not None)


def _judge(name: str, baseline: StaticEvidence, evidence: StaticEvidence) -> Ranked:
    pairs = _pairs(baseline, evidence)
    if not pairs:
        return Ranked(name, 0.0, False, f"{NO_ADVANTAGE}: no kernel of it has a counterpart to compare with")
    compared = [(after, compare(before, after)) for before, after in pairs]
    score = sum(change.gain for _, changes in compared for change in changes) / len(compared)
    advantage = score > 0 and any(change.gain > 0 for _, changes in compared for change in changes)
    reason = _reason(compared)
    return Ranked(name, score, advantage, reason if advantage else f"{NO_ADVANTAGE}: {reason}")


def _reason(compared: Sequence[tuple[KernelEvidence, tuple[Change, ...]]]) -> str:
    shown = [change.text for change in compared[0][1]]
    told = set(shown)
    for kernel, changes in compared[1:]:
        # The first instantiation speaks for all, but what counts against any of them is said.
        for change in changes:
            if change.gain < 0 and change.text not in told:
                told.add(change.text)
                shown.append(f"{change.text} in {unmarked(kernel.name)}")
    count = f" ({len(compared)} instantiations)" if len(compared) > 1 else ""
    return ", ".join(shown) + count


def _pairs(baseline: StaticEvidence, evidence: StaticEvidence) -> list[tuple[KernelEvidence, KernelEvidence]]:
    marked = [kernel for kernel in evidence.kernels if MARKER in kernel.name]
    by_name = {unmarked(kernel.name): kernel for kernel in marked or evidence.kernels}
    pairs = [(before, by_name[before.name]) for before in baseline.kernels if before.name in by_name]
    if pairs:
        return pairs
    by_arguments = {_arguments(name): kernel for name, kernel in by_name.items()}
    return [(b, by_arguments[_arguments(b.name)]) for b in baseline.kernels if _arguments(b.name) in by_arguments]


def _arguments(name: str) -> str:
    return name.partition("<")[2]


def _width(what: str, before: tuple[tuple[int, int], ...], after: tuple[tuple[int, int], ...]) -> Change | None:
    if not before or not after:
        return None
    old, new = max(bits for bits, _ in before), max(bits for bits, _ in after)
    return None if old == new else Change(f"{what} {old}→{new} bit", math.log2(new / old))


def _moved(kernel: KernelEvidence) -> float:
    """Bytes that one pass over all global accesses moves, per thread."""
    return sum(bits * count for bits, count in (*kernel.global_loads, *kernel.global_stores)) / 8 or 1.0


def _calls(before: KernelEvidence, after: KernelEvidence) -> Change | None:
    if before.calls and not after.calls:
        return Change(f"slow-path calls {before.calls}→0", _CALLS_GONE)
    if after.calls and not before.calls:
        return Change(f"slow-path calls 0→{after.calls}", -_CALLS_GONE)
    return _rate("slow-path calls per byte moved", before.calls, after.calls, before, after, 1.0)


def _rate(what: str, old: int, new: int, before: KernelEvidence, after: KernelEvidence, weight: float) -> Change | None:
    old_rate, new_rate = old / _moved(before), new / _moved(after)
    if not old and not new:
        return None
    if not old or not new:
        return Change(f"{what} {old_rate:.3g}→{new_rate:.3g}", weight if old else -weight)
    ratio = old_rate / new_rate
    if 1 / _NOTEWORTHY < ratio < _NOTEWORTHY:
        return None
    return Change(f"{what} {old_rate:.3g}→{new_rate:.3g}", weight * math.log2(ratio))


def _barriers(before: KernelEvidence, after: KernelEvidence) -> Change | None:
    old, new = before.barriers, after.barriers
    if old == new:
        return None
    shuffles = f" (shuffles {before.shuffles}→{after.shuffles})" if before.shuffles != after.shuffles else ""
    return Change(f"barriers {old}→{new}{shuffles}", 0.5 * math.log2((old + 1) / (new + 1)))


def _warps(registers: int) -> int:
    """Warps that a multiprocessor can hold by their registers: 8 registers a thread, 4 warps at a time."""
    per_warp = max(8, math.ceil(registers / 8) * 8) * _LANES
    return min(_WARPS, _REGISTERS // per_warp // 4 * 4)


def _registers(before: KernelEvidence, after: KernelEvidence) -> list[Change]:
    old, new = _warps(before.registers), _warps(after.registers)
    changes = [Change(f"registers {before.registers}→{after.registers}", 0.0)]
    if old != new:
        # More warps than before help only where latency isn't hidden yet: half the weight of a loss.
        gain = math.log2(new / old)
        changes.append(Change(f"occupancy by registers {old}→{new} warps", gain if gain < 0 else gain / 2))
    limit = _REGISTERS // _LARGEST_BLOCK
    if after.registers > limit >= before.registers:
        changes.append(Change(f"more than {limit} registers: no block of {_LARGEST_BLOCK} threads", _UNSTARTABLE))
    return changes


def _spills(before: KernelEvidence, after: KernelEvidence) -> Change:
    old = before.spill_store_bytes + before.spill_load_bytes
    new = after.spill_store_bytes + after.spill_load_bytes
    if old == new:
        return Change("no spills" if not new else f"spills {new} bytes as before", 0.0)
    return Change(f"spills {old}→{new} bytes", _SPILLS if new > old else -_SPILLS / 2)


def _local_memory(before: KernelEvidence, after: KernelEvidence) -> Change | None:
    """Stack that isn't spills: arrays that the compiler couldn't keep in registers."""
    old = before.stack_bytes if not before.spill_store_bytes else 0
    new = after.stack_bytes if not after.spill_store_bytes else 0
    if old == new:
        return None
    return Change(f"local memory {old}→{new} bytes", _LOCAL_MEMORY if new > old else -_LOCAL_MEMORY / 2)


def _shared(before: KernelEvidence, after: KernelEvidence) -> Change | None:
    if before.shared_bytes == after.shared_bytes:
        return None
    return Change(f"shared memory {before.shared_bytes}→{after.shared_bytes} bytes", 0.0)
