"""What goes into each role and what comes out of it."""

from __future__ import annotations

from typing import ClassVar

from astra_integrate.records import (
    Addition,
    Candidate,
    Cost,
    KernelEvidence,
    LaunchPlan,
    Record,
    Replacement,
    Slice,
    StaticEvidence,
    Workload,
)


class Tried(Record):
    """A candidate of an earlier round, as the planning role is told of it. ``gain``: it became the best so far."""

    strategy: str
    verdict: str
    detail: str = ""
    gain: bool = False


class TestingInput(Record):
    """The op and every workload there is for it."""

    __test__: ClassVar[bool] = False  # pytest would take the name for a test's

    op: str
    workloads: tuple[Workload, ...]


class TestingOutput(Record):
    """Ids of the workloads to run and the oracle that judges their outputs."""

    __test__: ClassVar[bool] = False

    workloads: tuple[str, ...]
    oracle: str
    reason: str


class ProfilingInput(Record):
    """Static evidence of the unmodified kernels. ``instantiation`` is the one to show (``ns::kernel<args>``)."""

    kernel: str
    instantiation: str = ""
    baseline: StaticEvidence


class Profile(Record):
    """What the evidence says, one finding a line; ``shown`` is the kernel that stands for the others."""

    findings: tuple[str, ...]
    shown: KernelEvidence | None = None


class PlanningInput(Record):
    """The slice, its profile and what was tried; ``best`` is the candidate to improve on."""

    slice: Slice
    profile: Profile
    tried: tuple[Tried, ...] = ()
    best: Candidate | None = None


class PlanningOutput(Record):
    """The strategy of the round; an empty one means that there is nothing left to try. ``notes`` say why not."""

    strategy: str
    reason: str
    expected: str = ""
    notes: tuple[str, ...] = ()


class CodingInput(Record):
    """What is to be coded, and on top of which candidate. ``complaint``: why the last answer could not be used."""

    slice: Slice
    plan: PlanningOutput
    best: Candidate | None = None
    complaint: str = ""


class RepairInput(Record):
    """A candidate that failed, and the words of what refused it: launcher, compiler or gate.

    ``complaint`` says why an earlier answer to this could not be used.
    """

    slice: Slice
    candidate: Candidate
    stage: str
    failure: str
    complaint: str = ""


class CodingOutput(Record):
    """Changed declarations and the launch plan, or the reason why there are none (``rejected``).

    ``gives_up``: asking again would give nothing else.
    """

    replaced: tuple[Replacement, ...] = ()
    added: tuple[Addition, ...] = ()
    plan: LaunchPlan = LaunchPlan()
    reasoning: str = ""
    rejected: str = ""
    gives_up: bool = False
    cost: Cost = Cost()
