"""What astra remembers: one folder per run, and one database over all of them that can be rebuilt from these."""

from __future__ import annotations

import difflib
import json
import logging
import re
import secrets
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from astra_integrate.errors import BadInput
from astra_integrate.locking import Exclusive
from astra_integrate.records import digest_of

from . import database
from .files import sync_folder, write_atomic
from .run import DESCRIPTION, LOCK, Artefact, Run, RunInfo

__all__ = ["Artefact", "Run", "RunInfo", "Store"]

log = logging.getLogger(__name__)

_UNFINISHED = ".new-"
_REMOVED = ".removed-"
_OPEN_SECONDS = 60.0


class Store:
    """The runs under ``home``: folders in ``home/runs``, the database ``home/store.db``.

    The folders are the truth: a run whose folder is there is known, one whose folder is gone is not.
    Several processes may use one store; each run has one writer at a time.

    Raises:
        BadInput: the folder can't be used, or the database is of a newer astra.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "runs"
        self.path = home / "store.db"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"{self.folder} can't be made: {error.strerror}", "Set ASTRA_HOME to a folder that can be written"
            ) from error
        self._refused = ""
        self._connection = self._open()

    def create(self, spec: str, kernel: str, op: str | None, options: dict[str, Any]) -> Run:
        """Start a run; it is open for writing. ``options`` is what ``json`` can write."""
        self._require_writable()
        now = datetime.now(UTC)
        name = re.sub(r"[^A-Za-z0-9_]+", "_", op or kernel).strip("_")[:60] or "kernel"
        unique = digest_of(json.dumps([spec, kernel, op, options, now.isoformat(), secrets.token_hex(8)]))
        info = RunInfo(
            f"{now:%Y%m%d}-{name}-{unique[:8]}", now.isoformat(timespec="milliseconds"), spec, kernel, op, options
        )
        description = {name: getattr(info, name) for name in ("id", "created", "spec", "kernel", "op", "options")}
        # Prepared under another name: a run is there with its description or not at all.
        draft = self.folder / (_UNFINISHED + info.id)
        folder = self.folder / info.id
        lock = Exclusive(folder / LOCK, f"Run {info.id}")
        try:
            write_atomic(draft / DESCRIPTION, json.dumps(description, indent=2).encode())
            draft.rename(folder)
            sync_folder(self.folder)
            lock.acquire()
            self._adopt(folder)
        except sqlite3.Error as error:
            lock.release()
            raise database.refusal(error, self.path) from error
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise BadInput(
                f"No run could be started in {self.folder}: {error.strerror or error}",
                "Free some space, then try again",
            ) from error
        return Run(self._connection, self.path, info, folder, lock)

    def open(self, run_id: str, *, write: bool = True) -> Run:
        """Open a run, to continue it or (``write=False``) to read it. See :meth:`resolve` for ``run_id``.

        Raises:
            BadInput: there is no such run, or another process writes it (its pid is named).
        """
        info = self._info(self.resolve(run_id))
        folder = self.folder / info.id
        if not write:
            return Run(self._connection, self.path, info, folder, None)
        self._require_writable()
        lock = Exclusive(folder / LOCK, f"Run {info.id}").acquire()
        run = Run(self._connection, self.path, info, folder, lock)
        try:
            run.reconcile()
        except BaseException:
            lock.release()
            raise
        return run

    def resolve(self, run_id: str) -> str:
        """The full id of ``run_id``: an id, the start of exactly one, or ``last``; near ids are suggested."""
        known: list[str] = [name for (name,) in self._connection.execute("SELECT id FROM runs ORDER BY created, rowid")]
        if run_id in known:
            return run_id
        if run_id == "last" and known:
            return known[-1]
        begins = [name for name in known if run_id and name.startswith(run_id)]
        if len(begins) == 1:
            return begins[0]
        near = (
            begins or difflib.get_close_matches(run_id, known, 3, 0.4) or [n for n in known if run_id and run_id in n]
        )
        hint = f"Did you mean {', '.join(near[-3:])}?" if near else "`astra runs list` shows what there is"
        raise BadInput(f"There is no run {run_id!r}" if not begins else f"{run_id!r} may be several runs", hint)

    def runs(self) -> list[RunInfo]:
        """Every run, the oldest first."""
        rows = self._connection.execute("SELECT id FROM runs ORDER BY created, rowid").fetchall()
        return [self._info(name) for (name,) in rows]

    def writer(self, run_id: str) -> str | None:
        """Who writes the run now (``process 123``), as far as can be seen from outside, or None."""
        return Exclusive(self.folder / run_id / LOCK, f"Run {run_id}").seen_holder()

    def remove(self, run_id: str) -> None:
        """Delete a run with all its files; raises :class:`BadInput` where it is being written."""
        name = self.resolve(run_id)
        self._require_writable()
        with Exclusive(self.folder / name / LOCK, f"Run {name}"):
            # First out of sight, in one step: a run that is half deleted must not look like one.
            gone = self.folder / (_REMOVED + name)
            (self.folder / name).rename(gone)
            self._connection.execute("DELETE FROM runs WHERE id = ?", (name,))
        shutil.rmtree(gone)

    def close(self) -> None:
        """Close the database; runs that are still open must not be used after it."""
        self._connection.close()

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the database."""
        self.close()

    def _open(self) -> sqlite3.Connection:
        """The database at its newest schema and in step with the folders; in memory where the disk refuses it."""
        try:
            # One process at a time migrates, moves a damaged file aside, or takes in folders.
            with Exclusive(self.path.with_name("store.lock"), "The store", wait=_OPEN_SECONDS):
                try:
                    connection = database.connect(self.path)
                except database.Damaged as error:
                    aside = database.move_aside(self.path)
                    log.warning(
                        "%s was damaged (%s): moved to %s, rebuilt from the run folders", self.path, error, aside
                    )
                    connection = database.connect(self.path)
                self._take_in(connection)
                return connection
        except (sqlite3.OperationalError, OSError) as error:
            self._refused = str(error)
            log.warning("%s can't be written (%s): runs can only be read", self.path, error)
            connection = database.connect(None)
            self._take_in(connection)
            return connection

    def _take_in(self, connection: sqlite3.Connection) -> None:
        """Make the database know the runs whose folders are there, and no others."""
        self._connection = connection
        folders = {entry.name: entry for entry in self.folder.iterdir() if (entry / DESCRIPTION).is_file()}
        known = {name for (name,) in connection.execute("SELECT id FROM runs")}
        for name in sorted(folders.keys() - known):
            if name.startswith((_UNFINISHED, _REMOVED)):
                continue
            try:
                self._adopt(folders[name])
                Run(connection, self.path, self._info(name), folders[name], None).reconcile()
            except (BadInput, ValueError, KeyError) as error:
                # One damaged run must not keep the others from being used.
                log.warning("%s could not be read in full: %s", folders[name], error)
        for name in known - folders.keys():
            connection.execute("DELETE FROM runs WHERE id = ?", (name,))

    def _require_writable(self) -> None:
        if self._refused:
            raise BadInput(
                f"{self.path} can't be written: {self._refused}",
                "Free some space or set ASTRA_HOME to a folder that can be written",
            )

    def _adopt(self, folder: Path) -> None:
        about = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        self._connection.execute(
            "INSERT OR IGNORE INTO runs (id, created, spec, kernel, op, options) VALUES (?, ?, ?, ?, ?, ?)",
            (folder.name, *(about[name] for name in ("created", "spec", "kernel", "op")), json.dumps(about["options"])),
        )

    def _info(self, name: str) -> RunInfo:
        row = self._connection.execute(
            "SELECT id, created, spec, kernel, op, options, "
            "(SELECT json_extract(payload, '$.outcome') FROM events WHERE run = runs.id AND stage = 'run' "
            " AND kind = 'RunResult' ORDER BY sequence DESC LIMIT 1), "
            "(SELECT count(*) FROM events WHERE run = runs.id) FROM runs WHERE id = ?",
            (name,),
        ).fetchone()
        run, created, spec, kernel, op, options, outcome, events = row
        return RunInfo(run, created, spec, kernel, op, json.loads(options), outcome, events)
