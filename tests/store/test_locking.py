"""Exclusive use of something on disk: who has it is named, and a dead holder is in nobody's way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.locking import Exclusive

HOLD = (
    "import sys; from pathlib import Path; from astra_integrate.locking import Exclusive\n"
    "lock = Exclusive(Path(sys.argv[1]), 'It').acquire(); print('held', flush=True); sys.stdin.read()"
)


def test_the_holder_is_named_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    mine = Exclusive(path, "The thing")
    with pytest.raises(BadInput, match=f"The thing is in use by process {other.pid}"):
        mine.acquire()
    # Failing to get it takes nothing from the holder, its name neither.
    assert mine.seen_holder() == f"process {other.pid}"
    other.kill()
    other.wait()
    assert mine.seen_holder() is None
    with mine:
        assert mine.seen_holder() == f"process {os.getpid()}"
    assert mine.seen_holder() is None


def test_waiting_for_the_holder(tmp_path: Path) -> None:
    first = Exclusive(tmp_path / "lock", "It").acquire()
    timer = threading.Timer(0.2, first.release)
    timer.start()
    with Exclusive(tmp_path / "lock", "It", wait=30):
        pass
    timer.join()


@pytest.mark.parametrize("owner", ["", "{", "[]", '{"pid": "x", "host": 1}'])
def test_a_lock_whose_holder_left_no_readable_name(tmp_path: Path, owner: str) -> None:
    with Exclusive(tmp_path / "lock", "It"):
        (tmp_path / "lock.owner").write_text(owner)
        with pytest.raises(BadInput, match="another process"):
            Exclusive(tmp_path / "lock", "It").acquire()


def test_a_holder_on_another_machine_is_named_with_it(tmp_path: Path) -> None:
    with Exclusive(tmp_path / "lock", "It"):
        (tmp_path / "lock.owner").write_text(json.dumps({"pid": 7, "host": "elsewhere"}))
        with pytest.raises(BadInput, match="process 7 on elsewhere"):
            Exclusive(tmp_path / "lock", "It").acquire()
        assert Exclusive(tmp_path / "lock", "It").seen_holder() == "process 7 on elsewhere"


def test_releasing_twice_or_never_held_is_nothing(tmp_path: Path) -> None:
    lock = Exclusive(tmp_path / "lock", "It")
    lock.release()
    lock.acquire().release()
    lock.release()
