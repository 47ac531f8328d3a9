"""What a command prints: its result on stdout (for people, or one JSON document), all else on stderr."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from astra_integrate import progress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

# Tables that go into a pipe or a file are not folded to the 80 columns that a missing terminal claims.
_PIPE_WIDTH = 160

_state: dict[str, Any] = {"emitted": False, "stdout": None}


def begin(*, quiet: bool = False) -> None:
    """Start a command: nothing is printed yet; ``quiet`` silences progress (never results or errors)."""
    _state.update(emitted=False, stdout=sys.stdout)
    progress.console.quiet = quiet


def emit(document: Any, human: RenderableType | None, json_mode: bool) -> None:
    """Print the result of a command.

    Args:
        document: a record, or dicts, lists, paths, records in any nesting; printed as one JSON document.
        human: what a person sees instead: text or anything that rich prints. None prints nothing.
        json_mode: whether ``--json`` was given.
    """
    if json_mode:
        _write_json(document)
        return
    if human is None:
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH)
    if isinstance(human, str):
        # As it is: paths must stay copyable and square brackets are no markup.
        console.print(human, markup=False, soft_wrap=True)
    else:
        console.print(human)


def fail(message: str, way_out: str, code: int, json_mode: bool) -> None:
    """Print an error: one line on stderr, and as the one JSON document where none was printed yet."""
    if json_mode and not _state["emitted"]:
        _write_json({"error": message, "way_out": way_out, "exit": code})
    line = f"{message.rstrip('.')}. {way_out}" if way_out else message
    sys.stderr.write(f"astra: {' '.join(line.split())}\n")


def note(text: str) -> None:
    """Tell something on stderr that is not the result (silent under ``--quiet``)."""
    progress.console.print(text, markup=False, highlight=False, soft_wrap=True)


def table(*headings: str, rows: Sequence[tuple[str, ...]], title: str = "") -> Table:
    """A plain table; cells are shown as they are (no markup), a heading that starts with ``>`` is right-aligned."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE, title=title or None, title_justify="left", pad_edge=False)
    for heading in headings:
        shown.add_column(heading.lstrip(">"), justify="right" if heading.startswith(">") else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


def _write_json(document: Any) -> None:
    # A command with --json runs with stdout sent to stderr (see cli.run); the document goes to the real one.
    stdout = _state["stdout"] if sys.stdout is sys.stderr else sys.stdout
    # In ASCII: it can be written under any locale, bytes of a source that are no UTF-8 included.
    stdout.write(json.dumps(_plain(document), indent=2, allow_nan=False) + "\n")
    stdout.flush()
    _state["emitted"] = True


def _plain(value: Any) -> Any:
    """What ``json`` can write: records and data classes as objects, infinity and NaN (no JSON) as strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
