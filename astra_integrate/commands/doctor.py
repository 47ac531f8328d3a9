"""``astra doctor``: what is used, what is missing, and the one line that mends it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .options import ArchOption, JsonOption, QuietOption, settings_from

if TYPE_CHECKING:
    from rich.console import RenderableType

    from astra_integrate.toolchain.checks import Check

_SHOWN = {"ok": "ok", "limited": "–", "missing": "MISSING"}


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(doctor)


def doctor(
    fetch: Annotated[
        bool, typer.Option("--fetch/--no-fetch", help="Fetch the CUDA tools that the system lacks (up to 110 MB).")
    ] = True,
    arch: ArchOption = None,
    json_mode: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what astra uses on this machine, what is missing, and the line that mends it.

    Exit code 0 when the whole chain can run (without a GPU nothing is timed), 2 when something required is missing.
    """
    from astra_integrate import __version__
    from astra_integrate.progress import step
    from astra_integrate.toolchain.checks import checks
    from astra_integrate.toolchain.discovery import discover
    from astra_integrate.toolchain.machine import machine

    settings = settings_from(arch=arch)
    with step("Looking at this machine"):
        toolchain = discover(settings, fetch=fetch)
        found = checks(settings, toolchain, fetch=fetch)
    ready = all(check.state != "missing" for check in found)
    document = {
        "version": __version__,
        "ready": ready,
        "checks": [asdict(check) for check in found],
        "machine": machine(toolchain),
    }
    output.emit(document, _shown(found, ready), json_mode)
    if not ready:
        raise typer.Exit(2)


def _shown(found: tuple[Check, ...], ready: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    rows: list[tuple[str, ...]] = [
        (check.name, _SHOWN[check.state], check.version, check.origin, check.path) for check in found
    ]
    mends = [(check.name, check.mend) for check in found if check.mend]
    parts: list[RenderableType] = [output.table("what", "", "version", "origin", "path", rows=rows)]
    if mends:
        parts.append(Text("To mend:", style="bold"))
        parts += [Text(f"  {name}: {mend}") for name, mend in mends]
    parts.append(Text("astra can run here." if ready else "astra can't run here yet: see MISSING above.", style="bold"))
    return Group(*parts)
