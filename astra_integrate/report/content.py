"""What a report shows, gathered from a run's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from astra_integrate import records
from astra_integrate.measure.evidence import MARKER
from astra_integrate.measure.rank import rank
from astra_integrate.records import (
    Candidate,
    Event,
    Machine,
    Patch,
    Record,
    RunResult,
    Slice,
    StaticEvidence,
    Trial,
    UnitCompile,
    Workload,
)

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Tried:
    """A candidate with what was found out about it; ``reason`` is what its static evidence says."""

    candidate: Candidate
    trial: Trial | None
    reason: str
    best: bool


@dataclass(frozen=True)
class Content:
    """All of a run that a report shows. ``baseline`` is the evidence of the unmodified kernel."""

    result: RunResult | None
    slice: Slice | None = None
    tried: tuple[Tried, ...] = ()
    baseline: StaticEvidence | None = None
    workloads: tuple[Workload, ...] = ()
    patch: Patch | None = None
    compile: UnitCompile | None = None
    machine: Machine | None = None
    events: tuple[Event, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def best(self) -> Tried | None:
        """The candidate that was chosen."""
        return next((tried for tried in self.tried if tried.best), None)


def gather(events: Sequence[Event], result: RunResult | None = None) -> Content:
    """Sort a run's events into what a report shows.

    An event's ``kind`` names the record class of its payload; the last record of a kind counts where
    there is one of a kind. Payloads that this version can't read are listed in ``unread``.
    """
    found = _Records(events)
    result = result or found.last(RunResult)
    trials = {trial.candidate: trial for trial in found.every(Trial)}
    candidates = {candidate.id: candidate for candidate in found.every(Candidate)}
    best = result.best if result is not None else None
    if best is not None:
        candidates.setdefault(best.id, best)
    # Evidence that stands alone is of the unmodified kernel; a candidate's carries its mark.
    unmarked = [evidence for evidence in found.every(StaticEvidence) if not _marked(evidence)]
    baseline = unmarked[-1] if unmarked else None
    machines = found.every(Machine) + [trial.machine for trial in trials.values()]
    return Content(
        result=result,
        slice=found.last(Slice),
        tried=tuple(
            Tried(
                item,
                trials.get(item.id),
                _static(baseline, trials.get(item.id)),
                best is not None and item.id == best.id,
            )
            for item in candidates.values()
        ),
        baseline=baseline,
        workloads=tuple(found.every(Workload)),
        patch=found.last(Patch),
        compile=found.last(UnitCompile) or (result.compile if result is not None else None),
        machine=machines[-1] if machines else None,
        events=tuple(events),
        unread=tuple(found.unread),
    )


class _Records:
    """The records that events hold, by class, in the order in which they were recorded."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.unread: list[str] = []
        self._found: list[Record] = []
        for event in events:
            kind = getattr(records, event.kind, None) if event.kind in records.__all__ else None
            if isinstance(kind, type) and issubclass(kind, Record):
                try:
                    self._found.append(kind.from_json(event.payload))
                except ValidationError:
                    self.unread.append(f"{event.sequence} {event.stage} {event.kind}")

    def every(self, kind: type[R]) -> list[R]:
        return [record for record in self._found if isinstance(record, kind)]

    def last(self, kind: type[R]) -> R | None:
        return next(iter(reversed(self.every(kind))), None)


def _marked(evidence: StaticEvidence) -> bool:
    return any(MARKER in kernel.name for kernel in evidence.kernels)


def _static(baseline: StaticEvidence | None, trial: Trial | None) -> str:
    if baseline is None or trial is None or trial.evidence is None:
        return ""
    return rank(baseline, [(trial.candidate, trial.evidence)])[0].reason
