"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from astra_integrate.errors import BadInput

if TYPE_CHECKING:
    from astra_integrate.records import RunResult
    from astra_integrate.settings import Settings


class Require(StrEnum):
    """How far a run must get for exit code 0; default: as far as this machine can."""

    emulated = "emulated"
    gpu = "gpu"
    e2e = "e2e"


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
ArchOption = Annotated[
    str | None, typer.Option("--arch", metavar="SM", help="GPU architecture, for example sm_90a [ASTRA_ARCH].")
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes at a time [ASTRA_JOBS].")
]
GpuOption = Annotated[int | None, typer.Option("--gpu", min=0, metavar="INDEX", help="Which GPU to use [ASTRA_GPU].")]
RequireOption = Annotated[
    Require | None,
    typer.Option("--require", help="What must be measured; less is exit code 3. Default: what this machine can do."),
]
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="vllm==V, sglang==V, vllm@GITREF, sglang@GITREF, a path, or installed:vllm.",
        show_default=False,
    ),
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="Run id, the start of one, or `last`.", show_default=False)
]

_ARCH = re.compile(r"sm_\d{2,3}[af]?")


def settings_from(**overrides: Any) -> Settings:
    """The settings with the options that were given (not None) on top; raises :class:`BadInput`."""
    from astra_integrate.settings import load

    settings = load(**{name: value for name, value in overrides.items() if value is not None})
    if not _ARCH.fullmatch(settings.arch):
        raise BadInput(f"{settings.arch!r} is no GPU architecture", "Use a name such as sm_80, sm_90a or sm_100")
    return settings


def exit_code(result: RunResult, require: Require | None = None) -> int:
    """Exit code of a finished run: 1 nothing correct or failed, 3 less measured than ``require`` asks for, else 0."""
    if result.outcome in ("failed", "no correct candidate"):
        return 1
    if result.outcome == "nothing to change" or require is None:
        return 0
    verdict = result.correctness.verdict if result.correctness else "not run"
    timed = result.timing is not None and result.timing.verdict not in ("not timed", "void")
    reached = {
        Require.emulated: verdict in ("correct under emulation", "correct on GPU"),
        Require.gpu: verdict == "correct on GPU" and timed,
        # No serving result is part of a run's result yet.
        Require.e2e: False,
    }
    return 0 if reached[require] else 3
