"""Whatever was acknowledged is there after a kill at any point, and a full disk hurts nothing."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.store import Run, Store

# Continues a run: event i and, at every third, file i, each acknowledged by a line on stdout.
# With a third argument it kills itself at that line of the store's code.
WRITER = """
import os, signal, sys
from pathlib import Path
import astra_integrate.store as module
from astra_integrate.store import Store

left = int(sys.argv[3])
folder = os.path.dirname(module.__file__)
locking = sys.modules["astra_integrate.locking"].__file__

def trace(frame, event, argument):
    global left
    if frame.f_code.co_filename != locking and not frame.f_code.co_filename.startswith(folder):
        return None
    if event == "line":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace

def say(text):
    os.write(1, text.encode() + b"\\n")

say("ready")
if left:
    sys.settrace(trace)
with Store(Path(sys.argv[1])) as store, store.open(sys.argv[2]) as run:
    for i in range(100000):
        if run.find(f"key {i}") is None:
            run.record("stage", f"key {i}", "kind", f"payload {i} " * 40)
            say(f"event {i}")
        if i % 3 == 0 and f"file {i % 15}" not in run.artefacts():
            run.artefact(f"file {i % 15}", f"content {i % 15}")
            say(f"file {i % 15}")
"""


def spawn(home: Path, run: str, lines: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home), run, str(lines)], stdout=subprocess.PIPE, text=True
    )


def acknowledged(process: subprocess.Popen[str]) -> set[str]:
    assert process.stdout is not None
    return {line.strip() for line in process.stdout if line.endswith("\n")} - {"ready"}


def check(home: Path, run_id: str, acknowledged: set[str]) -> None:
    with Store(home) as store, store.open(run_id) as run:
        events = run.events()
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        # In order and each once: what was resumed went on where the kill came.
        assert [event.key for event in events] == [f"key {i}" for i in range(len(events))]
        assert all(event.payload == f"payload {i} " * 40 for i, event in enumerate(events))
        have = {f"event {i}" for i in range(len(events))} | set(run.artefacts())
        assert acknowledged <= have
        for name in run.artefacts():
            assert (run.folder / name).read_text() == name.replace("file", "content")


def empty_run(home: Path) -> str:
    with Store(home) as store, store.create("s", "k", None, {}) as run:
        return run.id


def test_killed_at_20_random_lines_of_the_store(tmp_path: Path) -> None:
    run, total = empty_run(tmp_path), set[str]()
    dice = random.Random(4)
    for _ in range(20):
        process = spawn(tmp_path, run, dice.randint(1, 1500))
        total |= acknowledged(process)
        assert process.wait() == -signal.SIGKILL
        check(tmp_path, run, total)
    assert total, "no point lay late enough"


def test_killed_at_random_moments(tmp_path: Path) -> None:
    run, total = empty_run(tmp_path), set[str]()
    dice = random.Random(5)
    for _ in range(6):
        process = spawn(tmp_path, run, 0)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(dice.uniform(0.0, 0.1))
        process.kill()
        total |= acknowledged(process)
        process.wait()
        check(tmp_path, run, total)
    assert total, "no point lay late enough"


def two_events(home: Path) -> Run:
    with Store(home) as store, store.create("s", "k", None, {}) as run:
        run.record("a", "one", "k", "1")
        run.record("a", "two", "k", "2")
        return run


def test_an_event_that_only_reached_the_journal_is_kept(tmp_path: Path) -> None:
    journal = two_events(tmp_path).folder / "events.jsonl"
    line = journal.read_text().splitlines()[1].replace('"sequence": 2', '"sequence": 3').replace("two", "three")
    journal.write_text(journal.read_text() + line + "\n")
    with Store(tmp_path) as store, store.open("last") as run:
        assert [event.key for event in run.events()] == ["one", "two", "three"]


def test_a_torn_line_is_dropped_and_the_journal_mended(tmp_path: Path) -> None:
    journal = two_events(tmp_path).folder / "events.jsonl"
    whole = journal.read_text()
    journal.write_text(whole + '{"sequence": 3, "sta')
    with Store(tmp_path) as store, store.open("last") as run:
        assert len(run.events()) == 2
        assert journal.read_text() == whole
        run.record("a", "three", "k", "3")
    (tmp_path / "store.db").unlink()
    with Store(tmp_path) as store:
        assert [event.key for event in store.open("last").events()] == ["one", "two", "three"]


def test_a_lost_journal_is_written_again_from_the_database(tmp_path: Path) -> None:
    journal = two_events(tmp_path).folder / "events.jsonl"
    whole = journal.read_text()
    journal.unlink()
    with Store(tmp_path) as store, store.open("last"):
        assert journal.read_text() == whole


def test_an_event_lost_in_both_is_said(tmp_path: Path) -> None:
    journal = two_events(tmp_path).folder / "events.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[1:]))
    (tmp_path / "store.db").unlink()
    with Store(tmp_path) as store, pytest.raises(BadInput, match="events are missing"):
        store.open("last")


FULL = """
import resource, sys
from pathlib import Path
from astra_integrate.errors import BadInput
from astra_integrate.store import Store

with Store(Path(sys.argv[1])) as store, store.open("last") as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    done = 0
    try:
        for i in range(1000):
            run.record("stage", f"key {i}", "kind", "x" * 5000)
            done += 1
    except BadInput as error:
        print(f"refused: {error}")
    try:
        run.artefact("large", b"x" * 10_000_000)
    except BadInput as error:
        print(f"refused: {error}")
    assert len(run.events()) == done, (len(run.events()), done)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    run.record("stage", f"key {done}", "kind", "there is space again")
    print(done + 1)
"""


# The file that is refused first: the journal (smaller than the database's log), then the database's log.
@pytest.mark.parametrize("limit", [100_000, 101_000, 3000, 150_000])
def test_a_full_disk_is_one_clear_error_and_the_store_stays_readable(tmp_path: Path, limit: int) -> None:
    empty_run(tmp_path)
    process = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(limit)], capture_output=True, text=True, check=True
    )
    *refused, done = process.stdout.splitlines()
    assert len(refused) == 2 and all("could not be written" in line for line in refused), process.stdout
    # From the journal alone: a half-written line must not have swallowed the one after it.
    (tmp_path / "store.db").unlink()
    with Store(tmp_path) as store, store.open("last") as run:
        assert [event.key for event in run.events()] == [f"key {i}" for i in range(int(done))]
        assert run.artefacts() == {} and not list(run.folder.rglob(".new-*"))
        run.record("stage", "after", "kind", "x" * 5000)


def test_runs_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    two_events(tmp_path)
    code = (
        "import sys; from pathlib import Path; from astra_integrate.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "print(len(store.open('last', write=False).events()))\n"
        "try: store.create('s', 'k', None, {})\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)),
    )
    events, error = process.stdout.splitlines()
    assert events == "2" and error.startswith("BadInput") and "Free some space" in error
    assert "runs can only be read" in process.stderr
