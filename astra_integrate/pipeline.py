"""The stages in order: source → target → slice → workloads → loop → best → put back → proof → result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from . import frameworks
from .agents.loop import Limits, Measured, Outcome, optimise
from .agents.models import open_model
from .errors import NotMeasured
from .extract.slicing import make_slice
from .frameworks.base import Target
from .measure.compile import CompileError
from .measure.rank import LABEL, best
from .measure.workloads import workloads_for
from .outcomes import patched, ranked, without_patch
from .putback import prove, put_back
from .records import Lowering, Patch, Record, RunResult, Slice, Source, StaticEvidence, UnitCompile, Workload
from .reinject.lower import lower
from .report import write_page
from .settings import Settings
from .sources import resolve
from .stages import Stages
from .store import Run, Store
from .targets import choose
from .toolchain.discovery import Toolchain, discover, require
from .tools import tools_for


class Workloads(Record):
    """The workloads of an op, or the reason why there are none."""

    chosen: tuple[Workload, ...] = ()
    missing: str = ""


def start(spec: str, kernel: str, settings: Settings) -> RunResult:
    """Begin a run on ``kernel`` (op or kernel name) of ``spec`` and carry it to its result.

    Raises :class:`BadInput` before any run exists where the source or the name leads nowhere.
    """
    source, target = locate(spec, kernel, settings)
    open_model(settings.model, settings)
    options = {"arch": settings.arch, "model": settings.model, "rounds": settings.rounds, "seed": settings.seed}
    with Store(settings.home) as store, store.create(spec, kernel, target.op, options) as run:
        return _carry(run, source, target, settings)


def resume(run_id: str, settings: Settings) -> RunResult:
    """Go on with a run that was stopped; a finished one gives its result again. Same options as at its start."""
    with Store(settings.home) as store, store.open(run_id) as run:
        same = settings.model_copy(update=run.info.options)
        source, target = locate(run.info.spec, run.info.kernel, same)
        return _carry(run, source, target, same)


def locate(spec: str, kernel: str, settings: Settings) -> tuple[Source, Target]:
    """The source on disk and what the name means in it."""
    source = resolve(spec, settings)
    return source, choose(frameworks.get(source.framework), Path(source.root), kernel)


def cut_out(source: Source, target: Target, settings: Settings) -> tuple[Slice, Toolchain]:
    """The slice of a target, and the toolchain that it was cut with."""
    toolchain = _toolchain(settings)
    return make_slice(source, target, settings, toolchain), toolchain


def _toolchain(settings: Settings) -> Toolchain:
    """The toolchain with all that a run needs; raises ``MissingTool`` for what isn't there."""
    toolchain = discover(settings)
    require(toolchain, "nvcc", "cuobjdump", "c++", "git")
    return toolchain


def _carry(run: Run, source: Source, target: Target, settings: Settings) -> RunResult:
    """Every finished step is in ``run``: after a kill the same call goes on where it stopped."""
    begun = time.monotonic()
    stages = Stages(run)
    toolchain = _toolchain(settings)
    what = (source.content, repr(target), settings.arch)
    cut = stages.once("slice", what, Slice, lambda: make_slice(source, target, settings, toolchain))
    work = stages.once("workloads", (cut.digest,), Workloads, lambda: _workloads(cut))
    stages.keep("workload", work.chosen)
    try:
        outcome = _search(stages, cut, work, settings, toolchain)
    except CompileError as error:
        result = RunResult(
            run=run.id,
            source=source.spec,
            kernel=cut.kernel.name,
            op=cut.op,
            arch=cut.arch,
            model=settings.model,
            outcome="failed",
            reason=f"the unmodified slice does not compile: {error.message} {'; '.join(error.errors)}",
        )
        return _finish(stages, result, begun)
    stages.keep("candidate", [candidate for candidate, _ in outcome.tried])
    stages.keep("trial", [trial for _, trial in outcome.tried])
    chosen = next((pair for pair in outcome.tried if pair[0].id == outcome.best), None)
    if chosen is None:
        return _finish(stages, without_patch(run.id, cut, settings, outcome, work.missing), begun)
    built = _put_back(stages, cut, chosen, settings, toolchain)
    return _finish(stages, patched(run, cut, settings, outcome, chosen, built), begun)


def _workloads(cut: Slice) -> Workloads:
    if cut.op is None or cut.host_function is None:
        return Workloads(missing=f"{cut.kernel.name} is not tied to an op whose launcher could be run")
    try:
        return Workloads(chosen=workloads_for(cut.source.framework, cut.op))
    except NotMeasured as reason:
        return Workloads(missing=str(reason))


def _search(stages: Stages, cut: Slice, work: Workloads, settings: Settings, toolchain: Toolchain) -> Outcome:
    tools = tools_for(cut, settings, toolchain, missing=work.missing)
    model = open_model(settings.model, settings)

    def better(baseline: StaticEvidence, correct: Sequence[Measured]) -> str | None:
        found = best(ranked(baseline, correct))
        return found.candidate if found else None

    return stages.timed(
        "search",
        lambda: optimise(cut, work.chosen, model, tools, stages.run, better, Limits(rounds=settings.rounds)),
    )


def _put_back(stages: Stages, cut: Slice, chosen: Measured, settings: Settings, toolchain: Toolchain) -> UnitCompile:
    candidate, trial = chosen
    run = stages.run
    lowering = stages.once("lowering", (candidate.id,), Lowering, lambda: lower(cut, candidate))
    patch = stages.once(
        "put back",
        (lowering.digest,),
        Patch,
        lambda: put_back(cut, candidate, lowering, trial, run.folder, toolchain, run=run.id, chosen_by=LABEL),
    )
    for name, record in (("slice", cut), ("candidate", candidate), ("lowering", lowering), ("patch", patch)):
        run.artefact(f"{name}.json", record.to_json())
    run.artefact("change.diff", patch.diff)
    settings.patch_home.mkdir(parents=True, exist_ok=True)
    name = f"{patch.framework}-{patch.version}-{cut.op or cut.kernel.name}{lowering.marker}.json"
    (settings.patch_home / name.replace("::", "-")).write_text(patch.to_json(), encoding="utf-8")
    return stages.once(
        "patched unit",
        (lowering.digest, cut.arch),
        UnitCompile,
        lambda: prove(cut, lowering, patch, run.folder, settings, toolchain),
    )


def _finish(stages: Stages, result: RunResult, begun: float) -> RunResult:
    known = stages.run.result()
    page = str(stages.run.folder / "report.html")
    if known is not None and stages.idle:
        return known
    done = result.model_copy(
        update={
            "report": page,
            "stages": tuple(stages.seconds),
            "seconds": round(time.monotonic() - begun, 3),
        }
    )
    stages.run.finish(done)
    write_page(stages.run)
    return done
