"""The embedded model: deterministic source transformations that change what matches and say why not elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from astra_integrate.agents.messages import (
    CodingInput,
    CodingOutput,
    PlanningInput,
    PlanningOutput,
    ProfilingInput,
    RepairInput,
    TestingInput,
)
from astra_integrate.agents.models.base import Reply, Request
from astra_integrate.agents.models.rules import fast_math, vectorise
from astra_integrate.agents.models.rules.findings import Proposal
from astra_integrate.agents.models.rules.reading import read
from astra_integrate.agents.profiling import summarise
from astra_integrate.agents.testing import all_workloads
from astra_integrate.extract.parsing import clang_arguments
from astra_integrate.records import Record, Slice
from astra_integrate.toolchain.discovery import Toolchain

Pass = Callable[[Slice], Proposal]


class RulesModel:
    """Answers from the slice alone; equal requests have equal answers. Strategies are tried in a fixed order."""

    name = "rules"

    def __init__(self, toolchain: Toolchain) -> None:
        self._toolchain = toolchain
        self._proposals: dict[tuple[str, str], Proposal] = {}
        self._strategies: Mapping[str, Pass] = {
            vectorise.STRATEGY: lambda slice: vectorise.vectorise(read(slice, self._arguments(slice))),
            fast_math.STRATEGY: lambda slice: fast_math.fast_math(read(slice, self._arguments(slice))),
            f"{vectorise.STRATEGY} + {fast_math.STRATEGY}": self._combined,
        }

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies in the order in which they are tried."""
        return tuple(self._strategies)

    def answer(self, request: Request) -> Reply:
        """The role's output record as JSON."""
        return Reply(text=self._output(request.input).to_json())

    def propose(self, slice: Slice, strategy: str) -> Proposal:
        """What one strategy makes of ``slice``; ``KeyError`` for a strategy that isn't one."""
        key = (slice.digest, strategy)
        if key not in self._proposals:
            self._proposals[key] = self._strategies[strategy](slice)
        return self._proposals[key]

    def _output(self, input: Record) -> Record:
        if isinstance(input, TestingInput):
            return all_workloads(input)
        if isinstance(input, ProfilingInput):
            return summarise(input)
        if isinstance(input, PlanningInput):
            return self._plan(input)
        if isinstance(input, CodingInput):
            return self._code(input)
        if isinstance(input, RepairInput):
            return CodingOutput(rejected=f"rules have no repair for what the {input.stage} refused", gives_up=True)
        raise TypeError(f"no role takes a {type(input).__name__}")

    def _plan(self, input: PlanningInput) -> PlanningOutput:
        done = {tried.strategy for tried in input.tried}
        notes: list[str] = []
        for strategy in self._strategies:
            proposal = self.propose(input.slice, strategy)
            if strategy in done:
                continue
            if proposal.replaced:
                return PlanningOutput(
                    strategy=strategy, reason=proposal.reasoning, expected=proposal.expected, notes=tuple(notes)
                )
            notes += [f"{strategy}: {finding}" for finding in proposal.declined]
        reason = "every strategy that applies was tried" if done else "no strategy applies"
        return PlanningOutput(strategy="", reason=reason, notes=tuple(dict.fromkeys(notes)))

    def _code(self, input: CodingInput) -> CodingOutput:
        if input.plan.strategy not in self._strategies:
            return CodingOutput(rejected=f"rules have no strategy {input.plan.strategy!r}", gives_up=True)
        proposal = self.propose(input.slice, input.plan.strategy)
        return CodingOutput(replaced=proposal.replaced, plan=proposal.plan, reasoning=proposal.reasoning)

    def _combined(self, slice: Slice) -> Proposal:
        """Fast math first, then wider accesses on its result; nothing where either alone found nothing."""
        first, alone = self.propose(slice, fast_math.STRATEGY), self.propose(slice, vectorise.STRATEGY)
        if not first.replaced or not alone.replaced:
            return Proposal()
        texts = {replacement.declaration: replacement.text for replacement in first.replaced}
        changed = tuple(d.model_copy(update={"text": texts.get(d.id, d.text)}) for d in slice.declarations)
        second = vectorise.vectorise(read(slice.model_copy(update={"declarations": changed}), self._arguments(slice)))
        later = {replacement.declaration for replacement in second.replaced}
        return Proposal(
            replaced=(*(r for r in first.replaced if r.declaration not in later), *second.replaced),
            plan=second.plan,
            changes=(*first.changes, *second.changes),
            declined=(*first.declined, *second.declined),
            expected=f"{second.expected}; {first.expected}",
        )

    def _arguments(self, slice: Slice) -> list[str]:
        return clang_arguments(self._toolchain, slice.flags, slice.arch, root=Path(slice.source.root))
