"""Progress on stderr: one bar per long step, silent under ``--json --quiet`` and in tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

console = Console(stderr=True)


@dataclass
class Task:
    """A running step; ``advance`` by units of ``total`` and ``say`` what is in hand."""

    _progress: Progress | None = None
    _id: TaskID = field(default=TaskID(0))

    def advance(self, amount: float = 1) -> None:
        """Count ``amount`` more units as done."""
        if self._progress is not None:
            self._progress.advance(self._id, amount)

    def total(self, total: float) -> None:
        """Set the number of units once it is known."""
        if self._progress is not None:
            self._progress.update(self._id, total=total)

    def say(self, text: str) -> None:
        """Replace the description."""
        if self._progress is not None:
            self._progress.update(self._id, description=text)


_live: list[Progress] = []


@contextmanager
def step(description: str, total: float | None = None) -> Iterator[Task]:
    """Show ``description`` with a bar (``total`` units) or a spinner (unknown total) while the block runs.

    Steps nest: an inner step is a second line of the same display. Without a terminal the
    start of each step is one plain line, so a log tells what took the time.
    """
    if not console.is_terminal:
        console.print(description, highlight=False, style="dim")
        yield Task()
        return
    outermost = not _live
    if outermost:
        shown = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        shown.start()
        _live.append(shown)
    progress = _live[0]
    task = Task(progress, progress.add_task(description, total=total))
    try:
        yield task
    finally:
        progress.remove_task(task._id)
        if outermost:
            progress.stop()
            _live.clear()
