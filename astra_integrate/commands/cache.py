"""``astra cache``: downloads, headers, tools and parses, all of which can be fetched or made again."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .options import JsonOption, QuietOption, settings_from

_group = typer.Typer(help="Show and clear the cache.")


def register(app: typer.Typer) -> None:
    """Add ``cache show`` and ``cache clear``."""
    app.add_typer(_group, name="cache")


@_group.command()
def show(json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Show what the cache holds."""
    from dataclasses import asdict

    from astra_integrate.report.text import size
    from astra_integrate.sources.cache import entries

    settings = settings_from()
    found = entries(settings)
    total = sum(entry.bytes for entry in found)
    rows = [(entry.kind, size(entry.bytes), str(entry.files), str(entry.path)) for entry in found]
    table = output.table("Kind", ">Size", ">Files", "Folder", rows=[*rows, ("total", size(total), "", "")])
    document = {"folder": settings.cache, "bytes": total, "entries": [asdict(entry) for entry in found]}
    output.emit(document, table if rows else f"{settings.cache} holds nothing", json)


@_group.command()
def clear(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]...", help="What to clear (see `cache show`); default: all.", show_default=False),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Delete what the cache holds; what another process uses stays."""
    from astra_integrate.progress import step
    from astra_integrate.report.text import size
    from astra_integrate.sources.cache import clear as clear_cache

    settings = settings_from()
    with step("Clearing the cache"):
        freed = clear_cache(settings, kinds or ())
    output.emit({"folder": settings.cache, "freed_bytes": freed}, f"{size(freed)} freed in {settings.cache}", json)
