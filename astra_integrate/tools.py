"""The loop's tools, made of the measuring parts for one slice on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .agents.effects import Tools
from .extract.render import device_text
from .measure.compile import Limits, cubin, ptxas_log
from .measure.evidence import evidence
from .measure.gate import check
from .records import Candidate, Correctness, Lowering, Slice, StaticEvidence, Timing, Workload
from .reinject.lower import lower
from .settings import Settings
from .toolchain.discovery import Toolchain
from .toolchain.machine import machine


def tools_for(cut: Slice, settings: Settings, toolchain: Toolchain, *, missing: str = "") -> Tools:
    """Lower, compile and check candidates of ``cut``; ``missing`` is why there is nothing to check them on."""
    here = machine(toolchain)

    def lowered(candidate: Candidate) -> Lowering:
        return lower(cut, candidate)

    def compiled(lowering: Lowering | None) -> StaticEvidence:
        kept = cut.instantiations if lowering is None else lowering.instantiations
        text = device_text(cut, lowering, kept).text
        root = Path(cut.source.root)
        limits = Limits(seconds=settings.compile_seconds)
        made = cubin(text, cut.flags, cut.arch, toolchain, settings.cache / "cubins", root=root, limits=limits)
        return evidence(made, ptxas_log(made), toolchain, cut.arch)

    def checked(lowering: Lowering | None, workloads: Sequence[Workload]) -> Correctness:
        if not workloads:
            return Correctness(verdict="not run", detail=missing or "there is no workload")
        return check(cut, lowering, tuple(workloads), settings, toolchain)

    reason = "no GPU" if here.gpu is None else "timing on a GPU is not part of this version"
    timing = Timing(verdict="not timed", reason=reason)
    return Tools(lower=lowered, compile=compiled, check=checked, machine=here, timing=timing)
