"""``astra optimize``: the whole flow on one kernel, from its source to a proven patch."""

from __future__ import annotations

from typing import Annotated

import typer

from astra_integrate.errors import BadInput

from . import output
from .options import ArchOption, GpuOption, JobsOption, JsonOption, QuietOption, Require, RequireOption, exit_code


def register(app: typer.Typer) -> None:
    """Add ``optimize``."""
    app.command()(optimize)


def optimize(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="vllm==V, sglang==V, vllm@GITREF, sglang@GITREF, a path, or installed:vllm.",
            show_default=False,
        ),
    ] = None,
    kernel: Annotated[
        str | None, typer.Argument(metavar="[KERNEL]", help="Op or kernel, as `astra index` lists it.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was stopped.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="rules, openai:MODEL or scripted:FILE [ASTRA_MODEL].")
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Rounds at most [ASTRA_ROUNDS].")] = None,
    arch: ArchOption = None,
    jobs: JobsOption = None,
    gpu: GpuOption = None,
    require: RequireOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a kernel faster: extract, search, check, put back, prove. Ends with a ten-line summary.

    Exit codes: 0 done; 1 nothing correct was found or the proof failed; 2 bad input; 3 less was measured than
    --require asks for (default: correctness under emulation); 130 interrupted, go on with --resume.
    """
    from astra_integrate import pipeline
    from astra_integrate.report import summary
    from astra_integrate.store import Store

    from .options import settings_from

    settings = settings_from(arch=arch, jobs=jobs, gpu=gpu, model=model, rounds=rounds)
    if resume is not None:
        if source is not None or kernel is not None:
            raise BadInput("--resume takes no SOURCE and KERNEL", "The run knows its own")
        if any(option is not None for option in (arch, model, rounds)):
            raise BadInput(
                "--resume goes on with the options of the run's start", "Leave out --arch, --model, --rounds"
            )
        result = pipeline.resume(resume, settings)
    elif source is None or kernel is None:
        raise BadInput("SOURCE and KERNEL are needed", "For example: astra optimize SOURCE KERNEL; see --help")
    else:
        result = pipeline.start(source, kernel, settings)
    with Store(settings.home) as store, store.open(result.run, write=False) as run:
        lines = summary(result, run.events())
    output.emit(result, "\n".join(lines), json)
    code = exit_code(result, require or Require.emulated)
    if code:
        raise typer.Exit(code)
