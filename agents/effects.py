"""Everything the loop does to the outside, each under the key of its content: a finished step is never done twice."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from astra_integrate.agents.models.base import Model, Reply, Request
from astra_integrate.errors import BadInput, CheckFailed
from astra_integrate.measure.compile import CompileError
from astra_integrate.records import (
    Candidate,
    Correctness,
    Lowering,
    Machine,
    Record,
    StaticEvidence,
    Timing,
    Trial,
    Workload,
    digest_of,
)

R = TypeVar("R", bound=Record)
# A repair can't help where the gate itself had no verdict on the candidate.
_NOT_ITS_FAULT = ("not run", "baseline fails")
NOT_TIMED = Timing(verdict="not timed", reason="no GPU")


class Recorded(Protocol):
    """A recorded event."""

    @property
    def payload(self) -> str:
        """The record's JSON."""
        ...


class Journal(Protocol):
    """What remembers finished steps; ``record`` returns only when the event would survive a kill."""

    def find(self, key: str) -> Recorded | None:
        """The event under ``key``, if it is there."""
        ...

    def record(self, stage: str, key: str, kind: str, payload: str) -> object:
        """Append an event."""
        ...


@dataclass(frozen=True)
class Tools:
    """The stages that the loop calls. ``None`` in place of a lowering is the unmodified slice.

    ``lower`` raises ``BadInput`` and ``compile`` ``CompileError`` (or either ``CheckFailed``) where the
    candidate is at fault; any other error is the machine's and ends the run.
    """

    lower: Callable[[Candidate], Lowering]
    compile: Callable[[Lowering | None], StaticEvidence]
    check: Callable[[Lowering | None, Sequence[Workload]], Correctness]
    machine: Machine
    timing: Timing = NOT_TIMED


class Verdict(Record):
    """What became of one stage of a candidate; ``refused`` holds the stage's words where it failed."""

    lowering: Lowering | None = None
    evidence: StaticEvidence | None = None
    correctness: Correctness | None = None
    refused: str = ""


class Effects:
    """Model calls and measurements, looked up in the journal first."""

    def __init__(self, slice_digest: str, model: Model, tools: Tools, journal: Journal) -> None:
        self._slice = slice_digest
        self._model = model
        self._tools = tools
        self._journal = journal
        self._turns: Counter[str] = Counter()

    def once(self, stage: str, content: Sequence[str], kind: type[R], effect: Callable[[], R]) -> R:
        """The record under the key of ``content``; made by ``effect`` and recorded where it isn't there yet."""
        key = f"agents/{stage}/{digest_of(chr(0).join((self._slice, *content)))}"
        event = self._journal.find(key)
        if event is not None:
            return kind.from_json(event.payload)
        made = effect()
        self._journal.record(stage, key, kind.__name__, made.to_json())
        return made

    def ask(self, request: Request) -> Reply:
        """The model's answer to the role's next question."""
        asked = dataclasses.replace(request, turn=self._turns[request.role])
        self._turns[request.role] += 1
        content = (self._model.name, str(asked.turn), asked.system, asked.prompt, asked.input.digest)
        return self.once(request.role, content, Reply, lambda: self._model.answer(asked))

    def baseline(self) -> StaticEvidence:
        """Static evidence of the unmodified kernels."""
        return self.once("compile", ("baseline",), StaticEvidence, lambda: self._tools.compile(None))

    def trial(self, candidate: Candidate, workloads: Sequence[Workload]) -> tuple[Trial, str, str]:
        """(trial, stage, words): the last two say what refused the candidate, where that is its own fault."""
        lowered = self.once("lower", (candidate.id,), Verdict, lambda: self._lower(candidate))
        if lowered.lowering is None:
            return self._failed(candidate, lowered.refused), "launcher", lowered.refused
        lowering = lowered.lowering
        compiled = self.once("compile", (lowering.digest,), Verdict, lambda: self._compile(lowering))
        if compiled.evidence is None:
            return self._failed(candidate, compiled.refused), "compiler", compiled.refused
        ids = tuple(workload.digest for workload in workloads)
        checked = self.once(
            "check", (lowering.digest, *ids), Correctness, lambda: self._tools.check(lowering, workloads)
        )
        trial = self._trial(candidate, checked, compiled.evidence)
        if is_correct(trial) or checked.verdict in _NOT_ITS_FAULT:
            return trial, "", ""
        detail = checked.detail or next((r.detail for r in checked.results if r.verdict == checked.verdict), "")
        return trial, "gate", f"{checked.verdict}: {detail}" if detail else checked.verdict

    def _lower(self, candidate: Candidate) -> Verdict:
        try:
            return Verdict(lowering=self._tools.lower(candidate))
        except (BadInput, CheckFailed) as error:
            return Verdict(refused=str(error))

    def _compile(self, lowering: Lowering) -> Verdict:
        try:
            return Verdict(evidence=self._tools.compile(lowering))
        except CompileError as error:
            return Verdict(refused="\n".join((error.message, *error.errors)))
        except CheckFailed as error:
            return Verdict(refused=str(error))

    def _failed(self, candidate: Candidate, why: str) -> Trial:
        verdict = Correctness(verdict="does not compile", detail=why)
        return self._trial(candidate, verdict, None).model_copy(update={"compile_error": why})

    def _trial(self, candidate: Candidate, correctness: Correctness, evidence: StaticEvidence | None) -> Trial:
        return Trial(
            candidate=candidate.id,
            correctness=correctness,
            timing=self._tools.timing,
            evidence=evidence,
            machine=self._tools.machine,
        )


def is_correct(trial: Trial) -> bool:
    """Whether the gate let the candidate through."""
    return trial.correctness.verdict in ("correct under emulation", "correct on GPU")
