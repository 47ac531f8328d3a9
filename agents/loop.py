"""The loop of the Astra paper: test, profile, then rounds of plan, code, measure and repair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from astra_integrate.agents.coding import code
from astra_integrate.agents.effects import Effects, Journal, Tools, is_correct
from astra_integrate.agents.messages import (
    CodingInput,
    CodingOutput,
    PlanningInput,
    PlanningOutput,
    Profile,
    ProfilingInput,
    RepairInput,
    TestingInput,
    TestingOutput,
    Tried,
)
from astra_integrate.agents.models.base import Model
from astra_integrate.agents.planning import plan
from astra_integrate.agents.profiling import profile
from astra_integrate.agents.repair import repair
from astra_integrate.agents.testing import test
from astra_integrate.progress import step
from astra_integrate.records import Candidate, Record, Slice, StaticEvidence, Trial, Workload, digest_of

Measured = tuple[Candidate, Trial]
# The id of the best of the correct candidates, or None where none is better than the unmodified kernel.
Choose = Callable[[StaticEvidence, Sequence[Measured]], str | None]


@dataclass(frozen=True)
class Limits:
    """When to stop: ``rounds`` in all, ``patience`` rounds without gain, ``repairs`` of one candidate."""

    rounds: int = 5
    patience: int = 3
    repairs: int = 2


class Outcome(Record):
    """What the rounds found. ``rejected`` are answers that could not be used, ``declined`` places left as they are.

    ``best`` is the id of the chosen candidate, None where the unmodified kernel stays; ``stopped`` says why
    the loop ended.
    """

    tests: TestingOutput
    profile: Profile
    baseline: StaticEvidence
    tried: tuple[Measured, ...] = ()
    best: str | None = None
    rejected: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    stopped: str = ""


def optimise(
    slice: Slice,
    workloads: Sequence[Workload],
    model: Model,
    tools: Tools,
    journal: Journal,
    choose: Choose,
    limits: Limits = Limits(),
) -> Outcome:
    """Search for better declarations of ``slice``.

    Every model call and measurement is journalled under the key of its content before the next one
    starts, so a run that was killed anywhere goes on where it was and ends with the same outcome.
    Errors of the machine (no compiler, no answer from a server) end the loop; what was found stays journalled.
    """
    effects = Effects(slice.digest, model, tools, journal)
    op = slice.op or slice.kernel.name
    tests = test(TestingInput(op=op, workloads=tuple(workloads)), effects.ask)
    chosen = [workload for workload in workloads if workload.id in tests.workloads]
    baseline = effects.baseline()
    shown = slice.instantiations[0] if slice.instantiations else ""
    view = profile(ProfilingInput(kernel=slice.kernel.name, instantiation=shown, baseline=baseline), effects.ask)
    state = _State()
    with step(f"Optimising {op}", limits.rounds) as task:
        while not state.stopped:
            question = PlanningInput(slice=slice, profile=view, tried=tuple(state.told), best=state.best_candidate)
            planned = plan(question, effects.ask)
            state.declined += planned.notes
            if not planned.strategy:
                state.stopped = planned.reason
                break
            task.say(f"Round {len(state.told) + 1}: {planned.strategy}")
            tried, rejected = _round(question, planned, chosen, effects, model.name, state, limits.repairs)
            state.add(planned, tried, rejected)
            state.settle(choose(baseline, state.correct), limits)
            task.advance()
    return Outcome(
        tests=tests,
        profile=view,
        baseline=baseline,
        tried=tuple(state.tried),
        best=state.best,
        rejected=tuple(state.rejected),
        declined=tuple(dict.fromkeys(state.declined)),
        stopped=state.stopped,
    )


def _round(
    asked: PlanningInput,
    planned: PlanningOutput,
    workloads: Sequence[Workload],
    effects: Effects,
    author: str,
    state: _State,
    repairs: int,
) -> tuple[list[Measured], list[str]]:
    """Code the plan; on failure repair it, each time with the words of what refused it.

    Returns the candidates that were measured and the reasons why other answers could not be used.
    """
    tried: list[Measured] = []
    rejected: list[str] = []
    task = CodingInput(slice=asked.slice, plan=planned, best=asked.best)
    failed: RepairInput | None = None
    for _ in range(repairs + 1):
        answer = code(task, effects.ask) if failed is None else repair(failed, effects.ask)
        if answer.rejected:
            rejected.append(answer.rejected)
            if answer.gives_up:
                break
            task = task.model_copy(update={"complaint": answer.rejected})
            failed = failed and failed.model_copy(update={"complaint": answer.rejected})
            continue
        candidate = candidate_of(asked.slice, planned, answer, author, asked.best)
        if any(candidate.id == known.id for known, _ in (*state.tried, *tried)):
            rejected.append("the same change was tried before")
            break
        trial, stage, words = effects.trial(candidate, workloads)
        tried.append((candidate, trial))
        if not stage:
            break
        failed = RepairInput(slice=asked.slice, candidate=candidate, stage=stage, failure=words)
    return tried, rejected


def candidate_of(
    slice: Slice, planned: PlanningOutput, answer: CodingOutput, author: str, parent: Candidate | None
) -> Candidate:
    """The candidate that an answer describes; equal changes of equal slices have equal ids."""
    change = CodingOutput(replaced=answer.replaced, added=answer.added, plan=answer.plan)
    return Candidate(
        id=digest_of(f"{slice.digest} {change.to_json()}")[:16],
        parent=parent.id if parent else None,
        slice_digest=slice.digest,
        replaced=answer.replaced,
        added=answer.added,
        plan=answer.plan,
        author=author,
        strategy=planned.strategy,
        reasoning=answer.reasoning or planned.reason,
        expected=planned.expected,
        cost=answer.cost,
    )


class _State:
    """What the rounds have found so far."""

    def __init__(self) -> None:
        self.tried: list[Measured] = []
        self.told: list[Tried] = []
        self.rejected: list[str] = []
        self.declined: list[str] = []
        self.best: str | None = None
        self.idle = 0
        self.stopped = ""

    @property
    def correct(self) -> list[Measured]:
        return [(candidate, trial) for candidate, trial in self.tried if is_correct(trial)]

    @property
    def best_candidate(self) -> Candidate | None:
        return next((candidate for candidate, _ in self.tried if candidate.id == self.best), None)

    def add(self, planned: PlanningOutput, tried: list[Measured], rejected: list[str]) -> None:
        """Remember a round, for the outcome and for the next plan."""
        self.tried += tried
        self.rejected += [f"{planned.strategy}: {why}" for why in rejected]
        if tried:
            verdict = tried[-1][1].correctness
            told = Tried(strategy=planned.strategy, verdict=verdict.verdict, detail=verdict.detail)
        else:
            told = Tried(strategy=planned.strategy, verdict="no usable answer", detail=rejected[-1] if rejected else "")
        self.told.append(told)

    def settle(self, best: str | None, limits: Limits) -> None:
        """Keep the best so far and see whether the search is to end."""
        gain = best is not None and best != self.best
        self.idle = 0 if gain else self.idle + 1
        self.best = best
        self.told[-1] = self.told[-1].model_copy(update={"gain": gain})
        if len(self.told) >= limits.rounds:
            self.stopped = f"all {limits.rounds} rounds used"
        elif self.idle >= limits.patience:
            self.stopped = f"no gain in {limits.patience} rounds"
