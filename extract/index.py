"""Everything a framework's sources hold: kernels, launches, bindings, and what could not be read."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from astra_integrate import frameworks
from astra_integrate.errors import BadInput
from astra_integrate.extract import textscan
from astra_integrate.extract.cache import UnitCache
from astra_integrate.extract.callgraph import CallGraph
from astra_integrate.extract.kernels import merged
from astra_integrate.extract.parsing import clang_arguments
from astra_integrate.extract.worker import UnitRequest, UnitResult
from astra_integrate.frameworks.base import Framework
from astra_integrate.progress import step
from astra_integrate.records import Binding, Kernel, KernelIndex, Launch, Source, UnitFailure
from astra_integrate.settings import Settings
from astra_integrate.sources.headers import header_includes

if TYPE_CHECKING:
    from astra_integrate.toolchain.discovery import Toolchain


def build_index(
    source: Source,
    settings: Settings,
    toolchain: Toolchain,
    units: Sequence[str] | None = None,
) -> KernelIndex:
    """Read the source's units and put together what they tell.

    Args:
        source: where the framework lies.
        settings: architecture, jobs, cache, seconds per unit.
        toolchain: for the headers.
        units: only these; then nothing is said about kernels that other units hold.

    Raises:
        BadInput: a unit that the framework doesn't have, or a source without CUDA.
    """
    framework = frameworks.get(source.framework)
    root = Path(source.root).resolve()
    everything = framework.units(root)
    if not everything:
        raise BadInput(
            f"{source.spec} holds no CUDA source", "Give a version, git ref or checkout that has its CUDA files"
        )
    chosen = tuple(everything if units is None else dict.fromkeys(units))
    unknown = sorted(set(chosen) - set(everything))
    if unknown:
        raise BadInput(f"{unknown[0]} is no CUDA translation unit of {source.spec}", f"{root} holds {len(everything)}")
    results = _read(framework, root, chosen, settings, toolchain)
    failures = tuple(failure for outcome in results if (failure := _failure(outcome)) is not None)
    read = [outcome for outcome in results if isinstance(outcome, UnitResult)]
    kernels = merged([result.kernels for result in read])
    with step("Linking ops, kernels and Python callers"):
        bindings = _linked(framework, root, kernels, read)
        rest = framework.accounting(root)
    left = textscan.unindexed(rest.texts, read, kernels, rest.other_device, rest.generated) if units is None else ()
    return KernelIndex(
        source=source,
        arch=settings.arch,
        kernels=kernels,
        launches=_launches(read),
        bindings=bindings,
        failures=failures,
        unindexed=left,
        units=chosen,
    )


def _read(
    framework: Framework, root: Path, units: Sequence[str], settings: Settings, toolchain: Toolchain
) -> list[UnitResult | UnitFailure]:
    headers = header_includes(framework, root, settings)
    cache = UnitCache(settings.cache)
    outcomes: dict[str, UnitResult | UnitFailure] = {}
    missing: list[UnitRequest] = []
    for unit in units:
        flags = framework.flags(root, unit, settings.arch)
        request = UnitRequest(
            root=str(root),
            unit=unit,
            arguments=tuple(clang_arguments(toolchain, flags, settings.arch, root=root, headers=headers)),
            own_folders=framework.own_folders(root),
        )
        known = cache.get(request)
        if known is None:
            missing.append(request)
        else:
            outcomes[unit] = known
    if missing:
        say = f"Parsing {len(missing)} of {len(units)} units"
        with step(say, len(missing)) as task, ThreadPoolExecutor(max_workers=settings.jobs) as pool:
            running = {pool.submit(_run, request, settings.parse_seconds): request for request in missing}
            for done in as_completed(running):
                request, outcome = running[done], done.result()
                # What the cache stored has its paths marked as below the root.
                outcomes[request.unit] = cache.put(request, outcome) if isinstance(outcome, UnitResult) else outcome
                task.advance()
    return [outcomes[unit] for unit in units]


def _run(request: UnitRequest, seconds: float) -> UnitResult | UnitFailure:
    """Read one unit in a process of its own; what goes wrong with that process is the unit's failure."""
    with tempfile.TemporaryDirectory(prefix="astra-unit-") as folder:
        asked, reply = Path(folder, "request.json"), Path(folder, "reply.json")
        asked.write_text(request.to_json(), encoding="utf-8")
        # Run from a checkout, the package is found by this process's path alone.
        package = str(Path(frameworks.__file__).parent.parent.parent)
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths}
        command = [sys.executable, "-m", "astra_integrate.extract.worker", str(asked), str(reply)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=seconds, check=False, env=environment)
        except subprocess.TimeoutExpired:
            return UnitFailure(unit=request.unit, severity="timeout", cause=f"not read within {seconds:g} s")
        if done.returncode != 0 or not reply.is_file():
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            last = said[-1] if said else f"exit code {done.returncode}"
            return UnitFailure(unit=request.unit, severity="crash", cause=last)
        return UnitResult.from_json(reply.read_bytes())


def _failure(outcome: UnitResult | UnitFailure) -> UnitFailure | None:
    if isinstance(outcome, UnitFailure):
        return outcome
    if not outcome.problems:
        return None
    first = next((p for p in outcome.problems if p.severity == "fatal"), outcome.problems[0])
    more = f" (and {len(outcome.problems) - 1} more)" if len(outcome.problems) > 1 else ""
    cause = f"{first.file}:{first.line}: {first.text}{more}"
    return UnitFailure(unit=outcome.unit, severity="fatal" if outcome.fatal else "error", cause=cause)


def _linked(
    framework: Framework, root: Path, kernels: Sequence[Kernel], results: Sequence[UnitResult]
) -> tuple[Binding, ...]:
    graph = CallGraph(results, {kernel.name for kernel in kernels})
    bindings = framework.with_callers(root, framework.bindings(root))
    return tuple(_with_kernels(binding, graph) for binding in bindings)


def _with_kernels(binding: Binding, graph: CallGraph) -> Binding:
    reached, sure = graph.kernels(binding.host_function, binding.host_file)
    return binding.model_copy(update={"kernels": reached, "ambiguous": binding.ambiguous or not sure})


def _launches(results: Sequence[UnitResult]) -> tuple[Launch, ...]:
    """Launches of all units; one seen in several has the instantiations of all."""
    found: dict[tuple[str, int, str, str], Launch] = {}
    for launch in (launch for result in results for launch in result.launches):
        key = (launch.file, launch.offset, launch.kernel, launch.host_function)
        before = found.get(key)
        if before is not None:
            both = tuple(sorted({*before.instantiations, *launch.instantiations}))
            launch = before.model_copy(update={"instantiations": both})
        found[key] = launch
    return tuple(found[key] for key in sorted(found))
