"""``astra runs``: what was run on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .options import JsonOption, QuietOption, RunArgument, settings_from

if TYPE_CHECKING:
    from astra_integrate.store import Store

_group = typer.Typer(help="List, show and remove runs.")


def register(app: typer.Typer) -> None:
    """Add ``runs list``, ``runs show`` and ``runs remove``."""
    app.add_typer(_group, name="runs")


def _store() -> Store:
    from astra_integrate.store import Store

    return Store(settings_from().home)


@_group.command("list")
def list_(json: JsonOption = False, quiet: QuietOption = False) -> None:
    """List the runs, the oldest first."""
    from dataclasses import asdict

    with _store() as store:
        found = [(info, store.writer(info.id)) for info in store.runs()]
        folder = store.folder
    document = {"folder": folder, "runs": [{**asdict(info), "writer": writer} for info, writer in found]}
    rows = [
        (info.id, info.created[:16].replace("T", " "), info.spec, info.op or info.kernel, _state(info.outcome, writer))
        for info, writer in found
    ]
    table = output.table("Run", "Started (UTC)", "Source", "Kernel", "Outcome", rows=rows)
    output.emit(document, table if rows else f"No runs in {folder}", json)


@_group.command()
def show(run: RunArgument = "last", json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Show a run: its summary, what it was asked, its events and files."""
    from astra_integrate.report import summary

    with _store() as store, store.open(run, write=False) as opened:
        result, events, times, writer = opened.result(), opened.events(), opened.times(), store.writer(opened.id)
        files = opened.artefacts()
        info, folder = opened.info, opened.folder
    document = {
        "run": info,
        "folder": folder,
        "writer": writer,
        "result": result,
        "events": [{**event.model_dump(), "time": times[event.sequence]} for event in events],
        "files": list(files.values()),
    }
    lines = summary(result, events) if result is not None else [f"{info.id}: {_state(None, writer)}"]
    lines += [f"  {'folder':<13}{folder}"]
    if result is None:
        lines += [f"  {'continue':<13}astra optimize --resume {info.id}"]
    if json or not events:
        output.emit(document, "\n".join(lines), json)
        return
    from rich.console import Group
    from rich.text import Text

    rows = [
        (str(event.sequence), times[event.sequence][11:19], event.stage, event.kind, event.key[:40]) for event in events
    ]
    output.emit(
        document,
        Group(
            *(Text(line, no_wrap=True, overflow="ignore") for line in lines),
            output.table(">#", "Time", "Stage", "Kind", "Key", rows=rows),
        ),
        json,
    )


@_group.command()
def remove(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run ids.", show_default=False)],
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Delete runs with all their files."""
    with _store() as store:
        # All names are looked up first: a wrong one removes nothing.
        names = list(dict.fromkeys(store.resolve(run) for run in runs))
        for name in names:
            store.remove(name)
    output.emit({"removed": names}, "\n".join(f"removed {name}" for name in names), json)


def _state(outcome: str | None, writer: str | None) -> str:
    if writer is not None:
        return f"running ({writer})"
    return outcome or "not finished"
