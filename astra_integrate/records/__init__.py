"""The frozen data that stages hand to each other (see docs/architecture.md)."""

from __future__ import annotations

from .base import Record, digest_of
from .candidate import Addition, Candidate, Cost, DeployedStep, LaunchPlan, LaunchStep, Lowering, Replacement, Variant
from .patch import Edit, Patch, Provenance, ServingResult, UnitCompile
from .run import Event, RunResult
from .slice import CompileFlags, Declaration, Slice
from .source import (
    Binding,
    Caller,
    Extent,
    Kernel,
    KernelIndex,
    Launch,
    Parameter,
    Source,
    TemplateParameter,
    Unindexed,
    UnitFailure,
)
from .trial import (
    Correctness,
    CorrectnessVerdict,
    KernelEvidence,
    Machine,
    OutputError,
    StaticEvidence,
    Timing,
    TimingVerdict,
    Trial,
    WorkloadResult,
)
from .workload import Argument, Comparator, DType, ScalarArgument, TensorArgument, Workload

__all__ = [
    "Addition",
    "Argument",
    "Binding",
    "Caller",
    "Candidate",
    "Comparator",
    "CompileFlags",
    "Correctness",
    "CorrectnessVerdict",
    "Cost",
    "DType",
    "Declaration",
    "DeployedStep",
    "Edit",
    "Event",
    "Extent",
    "Kernel",
    "KernelEvidence",
    "KernelIndex",
    "Launch",
    "LaunchPlan",
    "LaunchStep",
    "Lowering",
    "Machine",
    "OutputError",
    "Parameter",
    "Patch",
    "Provenance",
    "Record",
    "Replacement",
    "RunResult",
    "ScalarArgument",
    "ServingResult",
    "Slice",
    "Source",
    "StaticEvidence",
    "TemplateParameter",
    "TensorArgument",
    "Timing",
    "TimingVerdict",
    "Trial",
    "Unindexed",
    "UnitCompile",
    "UnitFailure",
    "Variant",
    "Workload",
    "WorkloadResult",
    "digest_of",
]
