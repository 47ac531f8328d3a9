"""The outcome of one optimise run, as its summary and report show it."""

from __future__ import annotations

from typing import Literal

from .base import Record
from .candidate import Candidate
from .patch import UnitCompile
from .trial import Correctness, Timing


class Event(Record):
    """One append-only fact of a run. ``key`` is the content key that makes a replayed step a no-op."""

    sequence: int
    stage: str
    key: str
    kind: str
    payload: str


class RunResult(Record):
    """What a run found. ``reason`` is given where there is no candidate to put back.

    ``declined`` says, strategy by strategy, where the model found nothing to change and why.
    ``stages`` holds the wall seconds of each stage in this process (a resumed run: since resumption).
    """

    run: str
    source: str
    kernel: str
    op: str | None
    arch: str
    model: str
    outcome: Literal["patched", "candidate", "nothing to change", "no correct candidate", "failed"]
    reason: str = ""
    best: Candidate | None = None
    correctness: Correctness | None = None
    timing: Timing | None = None
    chosen_by: str = ""
    compile: UnitCompile | None = None
    tried: int = 0
    declined: tuple[str, ...] = ()
    stages: tuple[tuple[str, float], ...] = ()
    not_measured: tuple[str, ...] = ()
    report: str | None = None
    diff: str | None = None
    seconds: float = 0.0
