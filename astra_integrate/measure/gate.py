"""The correctness gate without a GPU: a slice's op, changed and unchanged, emulated on every workload.

A pass reads exactly "correct under emulation". The candidate runs before any reference is computed,
in both thread orders, twice at the same addresses with different contents.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import BadInput, NotMeasured
from ..extract.render import op_text
from ..progress import step
from ..records import (
    CompileFlags,
    Correctness,
    CorrectnessVerdict,
    Lowering,
    Slice,
    Workload,
    WorkloadResult,
    digest_of,
)
from ..settings import Settings
from ..toolchain.discovery import Toolchain
from . import jobs, oracle
from .emulation.build import HERE, EmulationCompileError, build
from .jobs import Order, Outcome
from .judge import distance, dummies, judge
from .values import Array

ORDERS: tuple[Order, ...] = ("forward", "reverse")
# Typical relative error of fp8, the coarsest type, is 0.04; a right oracle leaves no op farther off than this.
_FAR_OFF = 0.1
PASS: CorrectnessVerdict = "correct under emulation"


@dataclass(frozen=True)
class Op:
    """What is emulated: the unmodified op's text, its launcher, and how it compiles."""

    text: str
    host_function: str
    parameters: int
    flags: CompileFlags
    includes: tuple[Path, ...] = ()


def check(
    slice: Slice, lowering: Lowering | None, workloads: Sequence[Workload], settings: Settings, toolchain: Toolchain
) -> Correctness:
    """Judge a lowered candidate (None: the unmodified op itself) on ``workloads``.

    Raises:
        NotMeasured: the op has no host function, or the emulation lacks something that the unmodified op needs.
        BadInput: no workloads.
    """
    if slice.host_function is None:
        raise NotMeasured(f"{slice.kernel.name} has no host function that could be emulated", "Name the op instead")
    op = Op(op_text(slice).text, slice.host_function, len(slice.host_signature), slice.flags)
    candidate = op_text(slice, lowering).text if lowering is not None else op.text
    return check_text(op, candidate, workloads, settings, toolchain)


def check_text(
    op: Op, candidate: str, workloads: Sequence[Workload], settings: Settings, toolchain: Toolchain
) -> Correctness:
    """As :func:`check`, for texts. The result is kept by content: the same question is answered at once."""
    if not workloads:
        raise BadInput("There is no workload to judge by")
    home = settings.cache / "emulation" / "verdicts"
    kept = home / f"{_key(op, candidate, workloads, toolchain)}.json"
    if kept.is_file():
        return Correctness.from_json(kept.read_bytes())
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gate-", dir=home) as folder:
        result = _check(op, candidate, workloads, settings, toolchain, Path(folder))
    # What depends on the machine's load or memory is asked again next time.
    if not {"times out", "not run"} & {result.verdict, *(r.verdict for r in result.results)}:
        partial = kept.with_suffix(f".{digest_of(folder)[:8]}")
        partial.write_text(result.to_json(), encoding="utf-8")
        partial.replace(kept)
    return result


def _key(op: Op, candidate: str, workloads: Sequence[Workload], toolchain: Toolchain) -> str:
    own = [path.read_text(encoding="utf-8") for path in sorted(HERE.rglob("*.*pp"))]
    own += [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    parts = [op.text, candidate, op.host_function, str(op.parameters), op.flags.to_json(), str(toolchain.cxx), *own]
    return digest_of("\0".join([*parts, *(w.to_json() for w in workloads)]))


def _check(
    op: Op, candidate: str, workloads: Sequence[Workload], settings: Settings, toolchain: Toolchain, folder: Path
) -> Correctness:
    libraries = settings.cache / "emulation" / "libraries"

    def library(text: str) -> Path:
        signature = [("", "")] * op.parameters
        return build(text, op.host_function, signature, libraries, toolchain, settings, op.flags, op.includes)

    name = workloads[0].op
    with step(f"Compiling {name} for the CPU", 2) as task:
        try:
            unmodified = library(op.text)
        except EmulationCompileError as error:
            raise NotMeasured(f"{name} can't be emulated: its code needs {_need(error)}") from error
        task.advance()
        try:
            changed = library(candidate)
        except EmulationCompileError as error:
            if error.lacking and error.lacking.startswith("__"):
                return Correctness(verdict="not run", detail=f"the emulation lacks {error.lacking}")
            return Correctness(verdict="does not compile", detail=error.message)
    total = len(workloads) * len(ORDERS) * (1 if changed == unmodified else 2)
    with step(f"Emulating {name}", total) as task:

        def emulate(path: Path, seconds: float, what: str) -> dict[tuple[str, Order], Outcome]:
            task.say(f"Emulating {name}: {what}")
            run_folder = folder / what
            found = jobs.run(path, workloads, ORDERS, op.parameters, run_folder, settings, seconds, task.advance)
            shutil.rmtree(run_folder)
            return found

        return _judge_all(emulate, unmodified, changed, workloads, settings)


def _need(error: EmulationCompileError) -> str:
    return (
        f"{error.lacking}, which the emulation lacks" if error.lacking else f"something that it lacks ({error.message})"
    )


def _judge_all(
    emulate: Callable[[Path, float, str], dict[tuple[str, Order], Outcome]],
    unmodified: Path,
    changed: Path,
    workloads: Sequence[Workload],
    settings: Settings,
) -> Correctness:
    candidate = emulate(changed, settings.worker_seconds, "candidate")
    baseline = candidate if changed == unmodified else emulate(unmodified, settings.worker_seconds, "unmodified")
    results: list[WorkloadResult] = []
    for workload in workloads:
        weak = _powerless(workload, baseline[workload.id, "forward"])
        if weak:
            detail = f"workload {workload.id} can't tell right from wrong: {weak}"
            return Correctness(verdict="not run", detail=detail, results=tuple(results))
        for order in ORDERS:
            got, own = candidate[workload.id, order], baseline[workload.id, order]
            results.append(_result(workload, order, got, own, candidate[workload.id, "forward"]))
    return _summary(workloads, results)


def _powerless(workload: Workload, own: Outcome) -> str:
    """What a representative workload would let pass though it is no result; empty for nothing."""
    if workload.role != "representative" or own.status != "ok":
        return ""
    given = jobs.inputs(workload, 0)
    reference = references(workload, 0)
    comparators = {c.output: c for c in workload.comparators}
    for argument in jobs.outputs(workload):
        baseline, other = own.outputs[0][argument.name], own.outputs[1][argument.name]
        off = distance(argument, baseline, reference.get(argument.name))
        if off > _FAR_OFF:
            return f"the unmodified op's {argument.name} is off its oracle by {off:.2g}, so one of the two is wrong"
        for what, values in dummies(argument, given, other).items():
            found = judge(argument, comparators[argument.name], values, baseline, reference.get(argument.name))
            if not found.fault:
                return f"{what} would pass as {argument.name}"
    return ""


def references(workload: Workload, run: int) -> dict[str, object]:
    """The oracle's values of each output for one run's inputs; empty without an oracle."""
    if workload.oracle is None:
        return {}
    tensors = {a.name: a for a in jobs.outputs(workload)}
    given = {name: _widened(values) for name, values in jobs.inputs(workload, run).items()}
    empty = {name: np.zeros(a.shape) for name, a in tensors.items() if name not in given}
    dtypes = {a.name: a.dtype for a in workload.arguments if a.kind == "tensor"}
    made = oracle.evaluate(workload.oracle, {**jobs.scalars(workload), **given, **empty}, dtypes)
    return {name: value for name, value in made.items() if name in tensors}


def _widened(values: Array) -> Array:
    return values.astype("int64" if values.dtype.kind in "iub" else "float64")


def _result(workload: Workload, order: Order, got: Outcome, own: Outcome, forward: Outcome) -> WorkloadResult:
    def result(verdict: CorrectnessVerdict, detail: str = "", **more: object) -> WorkloadResult:
        kind = "expression" if workload.oracle else "differential"
        fields = {"workload": workload.id, "order": order, "verdict": verdict, "oracle": kind, "detail": detail}
        return WorkloadResult.model_validate({**fields, "seconds": got.seconds, **more})

    ended = _ended(got, own)
    if ended is not None:
        return result(*ended)
    errors = []
    comparators = {c.output: c for c in workload.comparators}
    for run in range(jobs.RUNS):
        reference = references(workload, run)
        for argument in jobs.outputs(workload):
            name = argument.name
            found = judge(
                argument, comparators[name], got.outputs[run][name], own.outputs[run][name], reference.get(name)
            )
            errors.append(found.error)
            if not found.fault:
                continue
            if run and (got.outputs[run][name].tobytes() == got.outputs[0][name].tobytes()):
                return result(
                    "cheats", f"{name}: output does not follow input (second call gives the first's)", errors=errors
                )
            hint = ""
            if (
                order == "reverse"
                and forward.status == "ok"
                and forward.outputs[run][name].tobytes() != got.outputs[run][name].tobytes()
            ):
                hint = "; the result depends on the order of threads: a barrier may be missing"
            return result("wrong", found.fault + hint, errors=errors)
    return result(PASS, errors=errors)


def _ended(got: Outcome, own: Outcome) -> tuple[CorrectnessVerdict, str] | None:
    """The verdict where one of the two didn't run through; None where both did."""
    if own.status in ("lacks", "mismatch", "unreached", "skipped"):
        return "not run", own.report or "not reached after a time-out"
    if own.status == "refused":
        if got.status == "refused":
            return PASS, f"both refuse: {own.report}"
        return "wrong", f"runs where the unmodified op refuses: {own.report}"
    if own.status != "ok":
        return "baseline fails", own.report
    if got.status == "ok":
        return None
    if got.status == "timeout":
        return "times out", got.report or "no end within the time limit"
    if got.status in ("lacks", "mismatch", "unreached", "skipped"):
        return "not run", got.report or "not reached after a time-out"
    if "may only read" in got.report:
        return "wrong", got.report
    return "crashes", got.report


def _summary(workloads: Sequence[Workload], results: Sequence[WorkloadResult]) -> Correctness:
    role = {w.id: w.role for w in workloads}
    for verdict in ("cheats", "crashes", "times out", "wrong"):
        for r in results:
            if r.verdict == verdict:
                return Correctness(
                    verdict=r.verdict, detail=f"{r.workload}, {r.order}: {r.detail}", results=tuple(results)
                )
    failing = sorted({r.workload for r in results if r.verdict == "baseline fails"})
    for r in results:
        if r.verdict == "baseline fails" and role[r.workload] == "representative":
            return Correctness(verdict="baseline fails", detail=f"{r.workload}: {r.detail}", results=tuple(results))
    unrun = sorted({f"{r.workload}: {r.detail}" for r in results if r.verdict == "not run"})
    if not any(r.verdict == PASS and role[r.workload] == "representative" for r in results):
        return Correctness(
            verdict="not run", detail=unrun[0] if unrun else "no representative workload", results=tuple(results)
        )
    notes = [f"{len(workloads)} workloads in {len(ORDERS)} thread orders"]
    if failing:
        notes.append(f"{len(failing)} edges fail in the unmodified op too ({', '.join(failing)})")
    if unrun:
        notes.append(f"{len(unrun)} not run ({'; '.join(unrun)})")
    return Correctness(verdict=PASS, detail="; ".join(notes), results=tuple(results))
