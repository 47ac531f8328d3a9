"""The SQLite file: migrations, newer and damaged files, network file systems."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.store import Store, database

NEWEST = len(database.migrations())


def schema(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")]


def test_version_1_migrates_to_the_newest_and_keeps_its_data(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    old = sqlite3.connect(path)
    old.executescript(database.migrations()[0][1])
    old.execute("INSERT INTO runs VALUES ('r', '2026', 'vllm==1', 'k', NULL, '{}')")
    old.execute("INSERT INTO events VALUES ('r', 1, 'extract', 'key', 'Slice', 'payload', '2026')")
    old.execute("PRAGMA user_version = 1")
    old.commit()
    old.close()

    connection = database.connect(path)

    assert connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
    assert connection.execute("SELECT * FROM events").fetchall() == [
        ("r", 1, "extract", "key", "Slice", "payload", "2026")
    ]
    assert connection.execute("SELECT id FROM runs").fetchall() == [("r",)]
    assert schema(connection) == schema(database.connect(None))


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database.connect(tmp_path / "store.db").close()
    broken = [*database.migrations(), (NEWEST + 1, "CREATE TABLE half (x); CREATE TABLE runs (x);")]
    monkeypatch.setattr(database, "migrations", lambda: broken)
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        database.connect(tmp_path / "store.db")
    monkeypatch.undo()
    connection = database.connect(tmp_path / "store.db")
    assert not any("half" in sql for sql in schema(connection))


def test_events_cannot_be_changed(tmp_path: Path) -> None:
    with Store(tmp_path) as store, store.create("s", "k", None, {}) as run:
        run.record("a", "b", "c", "d")
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store._connection.execute("UPDATE events SET payload = 'x'")


def test_a_database_of_a_newer_astra_is_refused_and_kept(tmp_path: Path) -> None:
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(BadInput, match=r"newer astra \(schema 999"):
        Store(tmp_path)
    assert not list(tmp_path.glob("*damaged*"))


@pytest.mark.parametrize("damage", ["not a database", "scrambled pages", "truncated"])
def test_a_damaged_database_is_moved_aside_and_rebuilt(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Store(tmp_path) as store, store.create("s", "k", "op", {"a": 1}) as run:
        for number in range(50):
            run.record("stage", f"key {number}", "kind", "payload " * 100)
        run.artefact("file.txt", b"content")
        before = (store.runs(), run.events(), run.artefacts(), run.times())
    path = tmp_path / "store.db"
    content = path.read_bytes()
    if damage == "not a database":
        path.write_bytes(b"garbage" * 1000)
    elif damage == "scrambled pages":
        path.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    else:
        path.write_bytes(content[: len(content) // 2])

    with Store(tmp_path) as store, store.open(run.id) as again:
        assert (store.runs(), again.events(), again.artefacts(), again.times()) == before
        again.record("stage", "one more", "kind", "x")
    assert len(list(tmp_path.glob("store.db.damaged-*"))) == 1
    assert "rebuilt from the run folders" in caplog.text


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
host:/x /mnt/with\\040space fuse.sshfs rw 0 0
tmpfs /over tmpfs rw 0 0
server:/over /over nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x", None),
        ("/home/me/.local", "nfs4"),
        ("/home/local/me", None),
        ("/homes", None),
        ("/mnt/with space/x", "fuse.sshfs"),
        ("/over/x", "nfs"),
    ],
)
def test_network_file_systems_are_recognised(path: str, kind: str | None) -> None:
    assert database.network_file_system(Path(path), MOUNTS) == kind


def test_wal_is_used_here_but_not_on_a_network_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    local = database.connect(tmp_path / "local.db")
    assert local.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert local.execute("PRAGMA synchronous").fetchone() == (2,)
    monkeypatch.setattr(database, "network_file_system", lambda path: "nfs4")
    remote = database.connect(tmp_path / "remote.db")
    assert remote.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert "without WAL" in caplog.text and "nfs4" in caplog.text
