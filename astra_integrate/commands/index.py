"""``astra index``: kernels, launches and bindings of a source, and what could not be read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .options import ArchOption, JobsOption, JsonOption, QuietOption, SourceArgument, settings_from

if TYPE_CHECKING:
    from rich.console import RenderableType

    from astra_integrate.frameworks import Framework, Target
    from astra_integrate.records import Binding, Kernel, KernelIndex, Launch

_SHOWN_FAILURES = 12
_SHOWN_CALLERS = 12


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(index)


def index(
    source: SourceArgument,
    unit: Annotated[
        list[str] | None, typer.Option("--unit", "-u", metavar="FILE", help="Read only this unit (repeatable).")
    ] = None,
    kernel: Annotated[str | None, typer.Option("--kernel", metavar="NAME", help="Show one kernel.")] = None,
    op: Annotated[
        str | None, typer.Option("--op", metavar="NAME", help="Show one op's chain: host function, kernels, callers.")
    ] = None,
    arch: ArchOption = None,
    jobs: JobsOption = None,
    json_mode: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the kernels of SOURCE with their launches, the ops that reach them and the Python that calls those.

    Exit code 0 when every unit was read (errors inside one are listed), 3 when a unit could not be.
    """
    from astra_integrate import frameworks
    from astra_integrate.extract.index import build_index
    from astra_integrate.sources import resolve
    from astra_integrate.toolchain.discovery import discover

    settings = settings_from(arch=arch, jobs=jobs)
    found = resolve(source, settings)
    framework = frameworks.get(found.framework)
    root = Path(found.root)
    targets = _targets(framework, root, kernel, op)
    units = list(dict.fromkeys(u for target in targets for u in target.units)) if targets else None
    built = build_index(found, settings, discover(settings), unit or units)
    shown = _only(built, targets, kernel)
    output.emit(shown, _page(shown, kernel, op), json_mode)
    unread = [failure for failure in shown.failures if failure.severity != "error"]
    if unread:
        raise typer.Exit(3)


def _targets(framework: Framework, root: Path, kernel: str | None, op: str | None) -> list[Target]:
    """What ``--kernel`` or ``--op`` means; raises BadInput with near names where there is none."""
    from astra_integrate.errors import BadInput
    from astra_integrate.targets import near

    name = op or kernel
    if name is None:
        return []
    found = framework.find(root, name)
    wanted = [target for target in found if (target.op if op else target.kernel)]
    if wanted:
        return wanted
    kind, other = ("op", "kernel") if op else ("kernel", "op")
    if found:
        raise BadInput(f"{name!r} is no {kind} but {other} here", f"Use --{other} {name}")
    close = near(name.rsplit("::", 1)[-1], framework.known_names(root))
    hint = f"Did you mean {', '.join(close)}?" if close else "List them with `astra index SOURCE`"
    raise BadInput(f"{framework.name} has no {kind} named {name!r} here", hint)


def _only(built: KernelIndex, targets: list[Target], kernel: str | None) -> KernelIndex:
    """The part of the index that belongs to the asked op or kernel; all of it when none was asked."""
    if not targets:
        return built
    ops = {(target.op, target.host_function) for target in targets if target.op}
    bindings = tuple(b for b in built.bindings if (b.op, b.host_function) in ops)
    names = {name for binding in bindings for name in binding.kernels}
    if kernel:
        names = {k.name for k in built.kernels if k.name == kernel or k.name.endswith(f"::{kernel}")}
        bindings = tuple(b for b in built.bindings if names & set(b.kernels))
    return built.model_copy(
        update={
            "kernels": tuple(k for k in built.kernels if k.name in names),
            "launches": tuple(launch for launch in built.launches if launch.kernel in names),
            "bindings": bindings,
        }
    )


def _page(shown: KernelIndex, kernel: str | None, op: str | None) -> RenderableType:
    from rich.console import Group

    parts: list[RenderableType] = []
    if op:
        parts += [_chain(binding, shown) for binding in shown.bindings]
    elif kernel:
        parts += [_kernel(one, shown) for one in shown.kernels]
    else:
        parts.append(_summary(shown))
    if shown.failures:
        rows: list[tuple[str, ...]] = [(f.unit, f.severity, f.cause) for f in shown.failures[:_SHOWN_FAILURES]]
        if len(shown.failures) > len(rows):
            rows.append((f"… and {len(shown.failures) - len(rows)} more (--json lists all)", "", ""))
        parts.append(output.table("unit", "severity", "cause", rows=rows, title="Not read without errors"))
    return Group(*parts)


def _summary(shown: KernelIndex) -> RenderableType:
    from rich.console import Group

    sites = {(launch.file, launch.offset) for launch in shown.launches}
    instantiations = {name for launch in shown.launches for name in launch.instantiations}
    unread = sum(failure.severity != "error" for failure in shown.failures)
    flawed = len(shown.failures) - unread
    rows = [
        ("units", str(len(shown.units)), f"{unread} not read, {flawed} with errors"),
        ("kernels", str(len(shown.kernels)), f"in {len({k.extent.file for k in shown.kernels})} files"),
        ("launch sites", str(len(sites)), f"{len(instantiations)} instantiations seen"),
        (
            "bindings",
            str(len(shown.bindings)),
            f"{sum(bool(b.kernels) for b in shown.bindings)} reach a kernel, "
            f"{sum(bool(b.callers) for b in shown.bindings)} have a Python caller",
        ),
        ("not indexed", str(len(shown.unindexed)), "kernels in the text with the reason below"),
    ]
    source = shown.source
    title = f"{source.framework} {source.version}, {shown.arch}"
    parts: list[RenderableType] = [output.table("", ">number", "", rows=rows, title=title)]
    if shown.unindexed:
        reasons = Counter(entry.reason for entry in shown.unindexed).most_common()
        examples = {entry.reason: f"{entry.name} ({entry.file}:{entry.line})" for entry in reversed(shown.unindexed)}
        rows = [(reason, str(count), examples[reason]) for reason, count in reasons]
        parts.append(output.table("why not indexed", ">kernels", "for example", rows=rows))
    return Group(*parts)


def _chain(binding: Binding, shown: KernelIndex) -> RenderableType:
    from rich.text import Text
    from rich.tree import Tree

    doubt = "  (ambiguous)" if binding.ambiguous else ""
    tree = Tree(Text(f"{binding.namespace}::{binding.op}{doubt}"))
    if binding.schema_text:
        tree.add(Text(binding.schema_text))
    host = tree.add(Text(f"host function {binding.host_function}  {binding.host_file or '(not found)'}"))
    if not binding.kernels:
        host.add(Text("no kernel of the framework's own is reached in the units read"))
    for kernel in (k for k in shown.kernels if k.name in binding.kernels):
        branch = host.add(Text(f"kernel {kernel.name}  {_place(kernel, shown)}"))
        launches = [one for one in shown.launches if one.kernel == kernel.name]
        own = [one for one in launches if one.host_function == binding.host_function]
        for launch in own or launches:
            branch.add(Text(_launch_line(launch)))
    callers = tree.add(Text(f"Python callers ({len(binding.callers)})"))
    for caller in binding.callers[:_SHOWN_CALLERS]:
        callers.add(Text(f"{caller.file}:{caller.line} {caller.function}"))
    return tree


def _kernel(kernel: Kernel, shown: KernelIndex) -> RenderableType:
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(f"{kernel.name}  {_place(kernel, shown)}"))
    tree.add(Text(kernel.signature))
    parameters = tree.add(Text("parameters"))
    for parameter in kernel.parameters:
        parameters.add(Text(f"{parameter.name}: {parameter.type} ({parameter.direction})"))
    launches = [one for one in shown.launches if one.kernel == kernel.name]
    sites = tree.add(Text(f"launches ({len(launches)})"))
    for launch in launches:
        sites.add(Text(_launch_line(launch)))
    ops = sorted(f"{b.namespace}::{b.op}" for b in shown.bindings if kernel.name in b.kernels)
    tree.add(Text(f"ops: {', '.join(ops) or 'none'}"))
    tree.add(Text(f"units: {', '.join(kernel.units)}"))
    return tree


def _place(kernel: Kernel, shown: KernelIndex) -> str:
    data = (Path(shown.source.root) / kernel.extent.file).read_bytes()
    line = data.count(b"\n", 0, kernel.extent.start) + 1
    return f"{kernel.extent.file}:{line}"


def _launch_line(launch: Launch) -> str:
    macro = f" in macro {launch.macro}" if launch.macro else ""
    seen = f", {len(launch.instantiations)} instantiations" if launch.instantiations else ""
    geometry = f"grid {launch.grid or '?'}, block {launch.block or '?'}, shared {launch.shared_bytes}"
    return f"{launch.file}:{launch.line} by {launch.host_function}{macro}: {geometry}{seen}"
