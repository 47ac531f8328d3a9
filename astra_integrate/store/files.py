"""Writing files so that a kill, a crash or a full disk leaves the old content or the new, never half of it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write_atomic(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``, on the disk when this returns; makes its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the folder's own entries (a new or renamed file) on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Journal:
    """A file of JSON lines that only grows. A line counts once it ends in a newline.

    It is what a run's history can always be rebuilt from, whatever happens to the database.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every entry that reads as one; a torn or damaged line is left out (see :meth:`intact`)."""
        for line in self._lines():
            entry = _entry(line)
            if entry is not None:
                yield entry

    def intact(self) -> bool:
        """Whether every line, the last included, reads as an entry."""
        return all(line.endswith(b"\n") and _entry(line) is not None for line in self._lines())

    def append(self, entry: dict[str, Any]) -> None:
        """Add one entry, on the disk when this returns; the file is as before where that fails."""
        # Unbuffered: a buffer would try again, at close, the bytes that were just taken back.
        with self.path.open("ab", buffering=0) as file:
            before = file.seek(0, os.SEEK_END)
            rest = json.dumps(entry).encode("ascii") + b"\n"
            try:
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except OSError:
                os.ftruncate(file.fileno(), before)
                raise

    def drop_last(self) -> None:
        """Take the last line back (its second copy could not be written)."""
        lines = list(self._lines())
        os.truncate(self.path, sum(map(len, lines[:-1])))

    def rewrite(self, entries: list[dict[str, Any]]) -> None:
        """Replace the whole file."""
        write_atomic(self.path, b"".join(json.dumps(entry).encode("ascii") + b"\n" for entry in entries))

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []


def _entry(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
