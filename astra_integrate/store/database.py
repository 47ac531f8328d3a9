"""The SQLite file: opening it safely, migrations, and the words for what can go wrong with it."""

from __future__ import annotations

import importlib.resources
import logging
import re
import sqlite3
import time
from pathlib import Path

from astra_integrate.errors import AstraError, BadInput

log = logging.getLogger(__name__)

# WAL needs memory shared between all processes that use the file, which these cannot give.
NETWORK_FILE_SYSTEMS = re.compile(
    r"nfs4?|cifs|smb[23]?|smbfs|ncpfs|9p|virtiofs|afs|ceph|lustre|gpfs|beegfs|glusterfs|ocfs2|gfs2|orangefs|pvfs2"
    r"|fuse\.(sshfs|glusterfs|ceph|s3fs|gcsfuse|rclone|juicefs|mergerfs)"
)

_BUSY_SECONDS = 30.0
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Damaged(Exception):
    """The file is no SQLite database, or one whose structure is broken."""


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order, numbered from 1 without gaps."""
    folder = importlib.resources.files(f"{__package__}.migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    found = [(int(name.split("_", 1)[0]), (folder / name).read_text(encoding="utf-8")) for name in names]
    assert [number for number, _ in found] == list(range(1, len(found) + 1)), names
    return found


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    """The type of the network file system that ``path`` lies on, or None.

    Args:
        path: an existing path.
        mounts: text in the form of ``/proc/mounts``; None reads that file (nothing is known where it isn't there).
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    path = path.resolve()
    longest, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # Spaces in mount points are written as \040.
        point = fields[1].encode("latin-1", "surrogateescape").decode("unicode_escape")
        # Of two mounts on one point the later one hides the earlier.
        if path.is_relative_to(point) and len(point) >= longest:
            longest, kind = len(point), fields[2]
    return kind if NETWORK_FILE_SYSTEMS.fullmatch(kind) else None


def connect(path: Path | None) -> sqlite3.Connection:
    """Open (or make) the database at its newest schema; None makes one in memory.

    Raises:
        Damaged: the file can't be used and may be moved aside.
        BadInput: the file was written by a newer astra.
        sqlite3.OperationalError: the disk refuses (full, read-only, busy).
    """
    connection = sqlite3.connect(
        path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        if path is not None:
            _choose_journal(connection, path)
            # An acknowledged event survives a power failure too.
            connection.execute("PRAGMA synchronous = FULL")
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise Damaged(verdict)
        migrate(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        if primary_code(error) in _DAMAGED:
            raise Damaged(str(error)) from error
        raise
    except (Damaged, AstraError):
        connection.close()
        raise
    return connection


def _choose_journal(connection: sqlite3.Connection, path: Path) -> None:
    network = network_file_system(path.parent)
    if network is not None:
        connection.execute("PRAGMA journal_mode = DELETE")
        log.warning("%s is on a network file system (%s): its database works without WAL, more slowly", path, network)
        return
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        log.warning("The file system of %s allows no WAL: its database works in mode %s, more slowly", path, mode)


def migrate(connection: sqlite3.Connection, path: Path | None = None) -> None:
    """Bring the schema to the newest version, each step in a transaction of its own."""
    known = migrations()
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(known):
        raise BadInput(
            f"{path} was written by a newer astra (schema {version}; this one knows {len(known)})",
            "Upgrade astra-integrate, or set ASTRA_HOME to another folder",
        )
    for number, sql in known[version:]:
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def move_aside(path: Path) -> Path:
    """Rename a damaged database with its side files; the new name of it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside


def primary_code(error: sqlite3.Error) -> int:
    """The primary SQLite result code of ``error`` (0 where it has none)."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def refusal(error: sqlite3.Error, path: Path) -> AstraError:
    """What a failed write or open means to a person."""
    code = primary_code(error)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return BadInput(
            f"{path} could not be written (no space left on the disk?): {error}",
            "Free some space, then --resume the run",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BadInput(f"{path} is held by another process for over {_BUSY_SECONDS:.0f} s", "Stop it, then --resume")
    if code in _DAMAGED:
        return BadInput(
            f"{path} was damaged while in use: {error}", "Run it again: the database is rebuilt at the start"
        )
    return BadInput(f"{path} could not be used: {error}", "Check its permissions, or set ASTRA_HOME to another folder")
