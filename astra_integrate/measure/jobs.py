"""Workloads handed to the worker process, and what came back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import NotMeasured
from ..records import ScalarArgument, TensorArgument, Workload
from ..settings import Settings
from . import values
from .values import Array

Order = Literal["forward", "reverse"]
Status = Literal["ok", "refused", "error", "mismatch", "unreached", "crash", "lacks", "timeout", "skipped"]
RUNS = 2  # the second has other contents at the same addresses
WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Outcome:
    """One job: how it ended, why, how long it took (seconds), and per run the values of each output."""

    status: Status
    report: str
    seconds: float
    outputs: tuple[Mapping[str, Array], ...] = field(default=())


def inputs(workload: Workload, run: int) -> dict[str, Array]:
    """The values that go in: of every tensor that the op reads (their last rows only where the workload says so)."""
    return {
        a.name: values.generate(values.tail_of(a, _tail(workload, a)), workload.seed, run)
        for a in workload.arguments
        if isinstance(a, TensorArgument) and a.role != "out"
    }


def _tail(workload: Workload, argument: TensorArgument) -> int:
    tensors = [a for a in workload.arguments if isinstance(a, TensorArgument)]
    rows = max(a.shape[0] for a in tensors if a.shape)
    return workload.tail_rows if argument.shape and argument.shape[0] == rows else 0


def scalars(workload: Workload) -> dict[str, Any]:
    """The values of the scalar arguments."""
    return {a.name: a.value for a in workload.arguments if isinstance(a, ScalarArgument)}


def outputs(workload: Workload) -> tuple[TensorArgument, ...]:
    """The tensors that the op writes, as they are compared."""
    tensors = (a for a in workload.arguments if isinstance(a, TensorArgument) and a.role != "in")
    return tuple(values.tail_of(a, _tail(workload, a)) for a in tensors)


def run(
    library: Path,
    workloads: Sequence[Workload],
    orders: Sequence[Order],
    parameters: int,
    folder: Path,
    settings: Settings,
    seconds: float,
    finished: Callable[[], None] = lambda: None,
) -> dict[tuple[str, Order], Outcome]:
    """Run ``library`` on every workload in every order, in one worker process with a child per job.

    Args:
        library: from :func:`astra_integrate.measure.emulation.build.build`.
        workloads: with ids that differ.
        orders: thread orders.
        parameters: how many arguments the host function takes; a workload's further scalars are left out.
        folder: for the worker's files; they are removed as they are read.
        settings: limit of memory.
        seconds: limit of each job; small jobs get less, so that a hang is found soon.
        finished: called after each job.

    Raises:
        NotMeasured: a workload doesn't fit the host function's parameters.
    """
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[dict[str, Any]] = []
    names: dict[str, tuple[Workload, Order]] = {}
    for number, workload in enumerate(workloads):
        arguments = _arguments(workload, parameters)
        files = _write_inputs(workload, number, len(arguments), folder)
        for order in orders:
            name = f"{number}.{order}"
            names[name] = (workload, order)
            tensors = [a for a in workload.arguments if isinstance(a, TensorArgument)]
            rows = max((a.shape[0] for a in tensors if a.shape), default=0)
            jobs.append(
                {"id": name, "library": str(library), "order": order, "arguments": arguments, "runs": files}
                | {"rows": rows, "tail": workload.tail_rows, "seconds": min(seconds, _patience(tensors))}
            )
    path = folder / "jobs.json"
    limits = {"bytes": settings.worker_bytes}
    path.write_text(json.dumps({"limits": limits, "jobs": jobs}), encoding="utf-8")
    found: dict[tuple[str, Order], Outcome] = {}
    for line in _worker(path):
        told = json.loads(line)
        workload, order = names[told["job"]]
        found[workload.id, order] = _outcome(told, workload, folder)
        finished()
    for name, (workload, order) in names.items():
        found.setdefault((workload.id, order), Outcome("crash", f"the worker ended before job {name}", 0.0))
    return found


def _patience(tensors: Sequence[TensorArgument]) -> float:
    """Seconds that a job may take: a hundred times what the emulation's slowest kernels need."""
    return 10.0 + sum(values.span_elements(a) for a in tensors) / 1e5


def _worker(path: Path) -> list[str]:
    # Isolated (-I), without site packages (-S), and with nothing of the user's environment.
    command = [sys.executable, "-I", "-S", str(WORKER), str(path)]
    environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=path.parent)
    if process.returncode and not process.stdout:
        raise NotMeasured(f"The worker process failed: {process.stderr.strip().splitlines()[-1:]}")
    return process.stdout.splitlines()


def _arguments(workload: Workload, parameters: int) -> list[dict[str, Any]]:
    extra = workload.arguments[parameters:]
    if len(workload.arguments) < parameters or any(isinstance(a, TensorArgument) for a in extra):
        raise NotMeasured(
            f"{workload.op} takes {parameters} arguments here, its workloads give {len(workload.arguments)}",
            "Describe its arguments in the framework's op data",
        )
    return [_argument(workload, argument) for argument in workload.arguments[:parameters]]


def _argument(workload: Workload, argument: TensorArgument | ScalarArgument) -> dict[str, Any]:
    if isinstance(argument, ScalarArgument):
        value = argument.value
        kind = "none" if value is None else "string" if isinstance(value, str) else "integer"
        if isinstance(value, float):
            kind = "float"
        return {"kind": kind, "name": argument.name, "value": int(value) if isinstance(value, bool) else value}
    each = values.numpy_dtype(argument.dtype).itemsize
    rows = _tail(workload, argument)
    strides = values.strides_of(argument)
    skipped = (argument.shape[0] - rows) * strides[0] if rows else 0
    return {
        "kind": "tensor",
        "name": argument.name,
        "dtype": argument.dtype,
        "shape": argument.shape,
        "strides": strides,
        "role": argument.role,
        "span": values.span_elements(argument) * each,
        "offset_bytes": argument.offset * each,
        "first": skipped * each,
    }


def _write_inputs(workload: Workload, number: int, parameters: int, folder: Path) -> list[dict[int, str]]:
    files: list[dict[int, str]] = []
    for turn in range(RUNS):
        given = inputs(workload, turn)
        names: dict[int, str] = {}
        for position, argument in enumerate(workload.arguments[:parameters]):
            if not isinstance(argument, TensorArgument):
                continue
            part = values.tail_of(argument, _tail(workload, argument))
            names[position] = f"{number}.{turn}.{position}.in"
            (folder / names[position]).write_bytes(values.to_bytes(part, given.get(argument.name)))
        files.append(names)
    return files


def _outcome(told: dict[str, Any], workload: Workload, folder: Path) -> Outcome:
    status, report = told["status"], told["report"]
    made: list[dict[str, Array]] = []
    if status == "ok":
        wanted = {a.name: a for a in outputs(workload)}
        for turn in range(told["runs"]):
            got: dict[str, Array] = {}
            for position, argument in enumerate(workload.arguments):
                if argument.name not in wanted:
                    continue
                path = folder / f"{told['job']}.{turn}.{position}.out"
                data = path.read_bytes()
                path.unlink()
                got[argument.name] = values.from_bytes(wanted[argument.name], data)
                if not values.gaps_intact(wanted[argument.name], data):
                    status, report = "crash", f"writes between the rows of the strided tensor '{argument.name}'"
            made.append(got)
    return Outcome(status, report, told["seconds"], tuple(made))
