"""What was found out about a candidate."""

from __future__ import annotations

from typing import Literal

from .base import Record

CorrectnessVerdict = Literal[
    "correct on GPU",
    "correct under emulation",
    "wrong",
    "cheats",
    "crashes",
    "times out",
    "does not compile",
    "baseline fails",
    "not run",
]
TimingVerdict = Literal["faster", "slower", "no measurable change", "void", "not timed"]


class Machine(Record):
    """Where a figure was taken. ``gpu`` is None where there was none."""

    host: str
    cpu: str
    cores: int
    memory_bytes: int
    gpu: str | None = None
    driver: str | None = None
    cuda: str | None = None
    compiler: str | None = None
    python: str = ""


class OutputError(Record):
    """Error of one output on one workload, of the candidate and of the unmodified kernel.

    Errors are the largest |value − oracle| ÷ max(|oracle|, smallest normal scale); ``limit`` is
    what the gate allowed. ``mismatches`` counts elements beyond the limit.
    """

    output: str
    candidate: float
    baseline: float
    limit: float
    mismatches: int = 0


class WorkloadResult(Record):
    """One workload under one fiber order, with the reason where it didn't pass."""

    workload: str
    order: Literal["forward", "reverse"]
    verdict: CorrectnessVerdict
    oracle: Literal["expression", "differential", "none"]
    detail: str = ""
    errors: tuple[OutputError, ...] = ()
    seconds: float = 0.0


class Correctness(Record):
    """The verdict over all workloads."""

    verdict: CorrectnessVerdict
    detail: str = ""
    results: tuple[WorkloadResult, ...] = ()


class Timing(Record):
    """Speed verdict; ``reason`` says why it is void or not timed."""

    verdict: TimingVerdict
    reason: str = ""
    ratio: float | None = None
    interval: tuple[float, float] | None = None


class KernelEvidence(Record):
    """Static facts of one compiled kernel. Widths are bits per thread → count of instructions.

    ``symbol`` is mangled, ``name`` demangled. Sizes are bytes. ``calls`` counts CALL
    instructions, ``special`` those of the special-function unit (MUFU).
    """

    symbol: str
    name: str
    registers: int
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    shared_bytes: int = 0
    global_loads: tuple[tuple[int, int], ...] = ()
    global_stores: tuple[tuple[int, int], ...] = ()
    shared_loads: int = 0
    shared_stores: int = 0
    local_accesses: int = 0
    special: int = 0
    calls: int = 0
    barriers: int = 0
    shuffles: int = 0
    atomics: int = 0
    branches: int = 0
    instructions: int = 0


class StaticEvidence(Record):
    """Evidence of all kernels in one cubin, and how it was made."""

    arch: str
    compiler: str
    kernels: tuple[KernelEvidence, ...] = ()
    seconds: float = 0.0


class Trial(Record):
    """Candidate × workloads: two verdicts with their evidence and the machine."""

    candidate: str
    correctness: Correctness
    timing: Timing
    evidence: StaticEvidence | None = None
    machine: Machine
    compile_error: str = ""
    escape: str = ""
