"""What a run found: ten lines for the terminal, one page for everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .content import Content, gather
from .summary import summary

if TYPE_CHECKING:
    from pathlib import Path

    from astra_integrate.store import Run

__all__ = ["PAGE", "Content", "gather", "page_of", "summary", "write_page"]

PAGE = "report.html"


def page_of(run: Run) -> bytes:
    """The HTML page of a run, finished or not."""
    from .page import render

    # Bytes of a source that are no UTF-8 are shown as escapes.
    return render(gather(run.events(), run.result())).encode("utf-8", "backslashreplace")


def write_page(run: Run) -> Path:
    """Write the page as a file of the run (open for writing) and return its path: ``run.folder / PAGE``."""
    return run.artefact(PAGE, page_of(run))
