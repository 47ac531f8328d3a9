"""One run: its append-only events and its files, safe against a kill at any point."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

from astra_integrate.errors import BadInput
from astra_integrate.locking import Exclusive
from astra_integrate.records import Event, RunResult, digest_of

from . import database
from .files import Journal, write_atomic

DESCRIPTION = "run.json"
EVENTS = "events.jsonl"
LOCK = "writer.lock"
_COLUMNS = ("sequence", "stage", "key", "kind", "payload", "time")
_FILE_COLUMNS = ("name", "digest", "bytes", "time")
_OURS = (DESCRIPTION, EVENTS, LOCK, LOCK + ".owner")


@dataclass(frozen=True)
class RunInfo:
    """What a run was asked to do. ``created`` is UTC, ISO 8601; ``outcome`` is None until it finished."""

    id: str
    created: str
    spec: str
    kernel: str
    op: str | None
    options: dict[str, Any]
    outcome: str | None = None
    events: int = 0


@dataclass(frozen=True)
class Artefact:
    """A file of the run as it was registered; ``digest`` is the SHA-256 of its bytes."""

    name: str
    digest: str
    bytes: int


class Run:
    """An open run; made by :class:`astra_integrate.store.Store`. Writable while it holds ``lock``.

    An event or file is acknowledged (its call returns) only when it is on the disk twice: in the run
    folder's journal and in the database. The journal is written first, so that whatever the database
    holds can be rebuilt; :meth:`reconcile` brings the two together again after a kill between them.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, info: RunInfo, folder: Path, lock: Exclusive | None
    ) -> None:
        self.info = info
        self.folder = folder
        self._connection = connection
        self._path = path
        self._lock = lock
        self._thread = threading.RLock()
        self._journal = Journal(folder / EVENTS)

    @property
    def id(self) -> str:
        """The run's id: date, op, hash."""
        return self.info.id

    def find(self, key: str) -> Event | None:
        """The event with that content key, if the run holds it."""
        row = self._connection.execute(
            "SELECT sequence, stage, key, kind, payload FROM events WHERE run = ? AND key = ?", (self.id, key)
        ).fetchone()
        return _event(row) if row else None

    def record(self, stage: str, key: str, kind: str, payload: str) -> Event:
        """Append an event; with a ``key`` that is there already this changes nothing and returns that event.

        Raises:
            BadInput: the run is open for reading only, or the disk refuses; the run is as before then.
            ValueError: the key is there for another stage or kind.
        """
        with self._thread:
            there = self.find(key)
            if there is not None:
                if (there.stage, there.kind) != (stage, kind):
                    raise ValueError(f"{key!r} is {there.stage}/{there.kind}, not {stage}/{kind}")
                return there
            last = self._connection.execute("SELECT max(sequence) FROM events WHERE run = ?", (self.id,)).fetchone()[0]
            event = Event(sequence=(last or 0) + 1, stage=stage, key=key, kind=kind, payload=payload)
            self._commit({**event.model_dump(), "time": _now()})
            return event

    def events(self) -> tuple[Event, ...]:
        """All events in the order in which they were recorded."""
        rows = self._connection.execute(
            "SELECT sequence, stage, key, kind, payload FROM events WHERE run = ? ORDER BY sequence", (self.id,)
        )
        return tuple(_event(row) for row in rows)

    def times(self) -> dict[int, str]:
        """Sequence → when that event was recorded (UTC, ISO 8601)."""
        return dict(self._connection.execute("SELECT sequence, time FROM events WHERE run = ?", (self.id,)).fetchall())

    def artefact(self, name: str, content: bytes | str) -> Path:
        """Write (or replace) a file of the run and register it; nothing is written where it is there already.

        Args:
            name: path below the run folder, with ``/``.
            content: the bytes; a string is written as UTF-8 with surrogateescape.
        """
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or parts[0] in _OURS:
            raise ValueError(f"{name!r} is no name for a file of a run")
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        path = self.folder / name
        with self._thread:
            digest = digest_of(data)
            known = self.artefacts().get(name)
            if known is None or known.digest != digest or not path.is_file() or digest_of(path.read_bytes()) != digest:
                self._writable()
                with self._refusals():
                    write_atomic(path, data)
                self._commit({"artefact": name, "digest": digest, "bytes": len(data), "time": _now()})
        return path

    def artefacts(self) -> dict[str, Artefact]:
        """Name → file, of every registered file."""
        rows = self._connection.execute("SELECT name, digest, bytes FROM artefacts WHERE run = ?", (self.id,))
        return {row[0]: Artefact(*row) for row in rows}

    def finish(self, result: RunResult) -> None:
        """Record the outcome; a resumed run may record another one, the last counts."""
        text = result.to_json()
        self.record("run", f"result:{digest_of(text)}", "RunResult", text)

    def result(self) -> RunResult | None:
        """The outcome, once the run finished."""
        row = self._connection.execute(
            "SELECT payload FROM events WHERE run = ? AND stage = 'run' AND kind = 'RunResult' "
            "ORDER BY sequence DESC LIMIT 1",
            (self.id,),
        ).fetchone()
        return RunResult.from_json(row[0]) if row else None

    def reconcile(self) -> None:
        """Bring journal and database together; the journal is mended only while this run holds its lock.

        Raises:
            BadInput: an event is lost in both.
        """
        entries = [entry for entry in self._journal.entries() if _complete(entry)]
        with self._refusals():
            self._connection.execute("BEGIN IMMEDIATE")
            for entry in entries:
                _insert(self._connection, self.id, entry)
            self._connection.execute("COMMIT")
            stored = self._stored()
            events = [entry["sequence"] for entry in stored if "sequence" in entry]
            if events != list(range(1, len(events) + 1)):
                raise BadInput(
                    f"Run {self.id} is damaged: events are missing from {self._journal.path}",
                    f"Start the run afresh, and `astra runs remove {self.id}`",
                )
            behind = len({_identity(entry) for entry in entries}) < len(stored)
            if self._lock is not None and (behind or not self._journal.intact()):
                self._journal.rewrite(stored)

    def close(self) -> None:
        """Let other processes write the run."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        """The run itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let other processes write the run."""
        self.close()

    def _commit(self, entry: dict[str, Any]) -> None:
        self._writable()
        with self._refusals():
            self._journal.append(entry)
            try:
                # One statement is one transaction.
                _insert(self._connection, self.id, entry)
            except BaseException:
                self._journal.drop_last()
                raise

    def _writable(self) -> None:
        if self._lock is None:
            raise BadInput(f"Run {self.id} is open for reading only", "Resume it to continue it")

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise database.refusal(error, self._path) from error
        except OSError as error:
            raise BadInput(
                f"Run {self.id} could not be written: {error.strerror or error} ({self.folder})",
                "Free some space or mend the permissions, then --resume the run",
            ) from error

    def _stored(self) -> list[dict[str, Any]]:
        events = self._connection.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM events WHERE run = ? ORDER BY sequence", (self.id,)
        )
        found = [dict(zip(_COLUMNS, row, strict=True)) for row in events]
        files = self._connection.execute(
            f"SELECT {', '.join(_FILE_COLUMNS)} FROM artefacts WHERE run = ? ORDER BY name", (self.id,)
        )
        return found + [dict(zip(("artefact", *_FILE_COLUMNS[1:]), row, strict=True)) for row in files]


def _complete(entry: dict[str, Any]) -> bool:
    return all(name in entry for name in (("digest", "bytes", "time") if "artefact" in entry else _COLUMNS))


def _insert(connection: sqlite3.Connection, run: str, entry: dict[str, Any]) -> None:
    if "artefact" in entry:
        connection.execute(
            "INSERT OR REPLACE INTO artefacts (run, name, digest, bytes, time) VALUES (?, ?, ?, ?, ?)",
            (run, entry["artefact"], entry["digest"], entry["bytes"], entry["time"]),
        )
    else:
        connection.execute(
            f"INSERT OR IGNORE INTO events (run, {', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (run, *(entry[name] for name in _COLUMNS)),
        )


def _identity(entry: dict[str, Any]) -> str:
    return f"file {entry['artefact']}" if "artefact" in entry else f"event {entry['sequence']}"


def _event(row: tuple[int, str, str, str, str]) -> Event:
    sequence, stage, key, kind, payload = row
    return Event(sequence=sequence, stage=stage, key=key, kind=kind, payload=payload)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
