"""``astra report``: the page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import output
from .options import JsonOption, QuietOption, RunArgument


def register(app: typer.Typer) -> None:
    """Add ``report``."""
    app.command()(report)


def report(
    run: RunArgument = "last",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write instead of the run's own.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the HTML report of a run: self-contained, works offline."""
    from astra_integrate.report import PAGE, page_of, summary
    from astra_integrate.store import Store
    from astra_integrate.store.files import write_atomic

    from .options import settings_from

    with Store(settings_from().home) as store, store.open(run, write=False) as opened:
        # Not registered as a file of the run: it can be made again at any time, also while the run goes on.
        path = (out or opened.folder / PAGE).absolute()
        write_atomic(path, page_of(opened))
        result = opened.result()
        lines = summary(result, opened.events()) if result is not None else [f"{opened.id}: not finished"]
        document = {"run": opened.id, "report": path, "result": result, "summary": lines}
    if show:
        import webbrowser

        webbrowser.open(path.as_uri())
    output.emit(document, "\n".join([*(line for line in lines if not line.startswith("  report ")), str(path)]), json)
