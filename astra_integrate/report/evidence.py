"""Static evidence of a kernel before and after, as rows to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from astra_integrate.measure.evidence import MARKER, unmarked
from astra_integrate.records import KernelEvidence, StaticEvidence

_NOTHING = ("0", "0 B", "0 / 0", "0 / 0 B", "none")


@dataclass(frozen=True)
class Row:
    """One fact, before and after; None where that kernel isn't there."""

    fact: str
    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Whether both are known and differ."""
        return None not in (self.before, self.after) and self.before != self.after

    @property
    def empty(self) -> bool:
        """Whether it says that there is nothing, before as after."""
        return {self.before, self.after} <= {None, *_NOTHING}


@dataclass(frozen=True)
class Comparison:
    """One kernel (its name without a candidate's mark) in two builds."""

    kernel: str
    rows: tuple[Row, ...]

    @property
    def changed(self) -> tuple[Row, ...]:
        """The rows that differ."""
        return tuple(row for row in self.rows if row.changed)


def _widths(counts: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"{count} × {bits} bit" for bits, count in sorted(counts, reverse=True)) or "none"


_FACTS: tuple[tuple[str, Callable[[KernelEvidence], str]], ...] = (
    ("registers per thread", lambda k: str(k.registers)),
    ("global loads", lambda k: _widths(k.global_loads)),
    ("global stores", lambda k: _widths(k.global_stores)),
    ("shared memory, static", lambda k: f"{k.shared_bytes} B"),
    ("shared loads / stores", lambda k: f"{k.shared_loads} / {k.shared_stores}"),
    ("stack", lambda k: f"{k.stack_bytes} B"),
    ("spills, stored / loaded", lambda k: f"{k.spill_store_bytes} / {k.spill_load_bytes} B"),
    ("local memory accesses", lambda k: str(k.local_accesses)),
    ("special-function instructions", lambda k: str(k.special)),
    ("calls", lambda k: str(k.calls)),
    ("barriers", lambda k: str(k.barriers)),
    ("warp shuffles", lambda k: str(k.shuffles)),
    ("atomics", lambda k: str(k.atomics)),
    ("branches", lambda k: str(k.branches)),
    ("instructions", lambda k: str(k.instructions)),
)


def compare(before: StaticEvidence | None, after: StaticEvidence | None) -> tuple[Comparison, ...]:
    """Kernels of both builds, those that the candidate changed first.

    A candidate's build holds its marked copies and may hold the unmodified kernels as well: a marked
    copy goes with the unmodified kernel of the same name, and hides that kernel's second build.
    """
    old = {kernel.name: kernel for kernel in (before.kernels if before else ())}
    new: dict[str, KernelEvidence] = {}
    for kernel in sorted(after.kernels if after else (), key=lambda k: MARKER in k.name):
        new[unmarked(kernel.name)] = kernel
    names = [*(name for name in old), *(name for name in new if name not in old)]
    names.sort(key=lambda name: name not in new or MARKER not in new[name].name)
    return tuple(_comparison(name, old.get(name), new.get(name)) for name in names)


def _comparison(name: str, old: KernelEvidence | None, new: KernelEvidence | None) -> Comparison:
    rows = (Row(fact, tell(old) if old else None, tell(new) if new else None) for fact, tell in _FACTS)
    return Comparison(name, tuple(rows))
