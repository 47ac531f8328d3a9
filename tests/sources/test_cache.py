"""The cache can be measured and cleared at any time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.sources import cache as module
from astra_integrate.sources.cache import clear, entries, hold, locked, place, read_note, staged, write_note


def fill(settings, kind: str, name: str, size: int = 50_000) -> Path:
    item = place(settings, kind) / name
    item.mkdir()
    (item / "data").write_bytes(os.urandom(size))
    return item


def test_an_empty_cache(settings):
    assert entries(settings) == () and clear(settings) == 0


def test_sizes_by_kind(settings):
    fill(settings, "sources", "a")
    fill(settings, "sources", "b")
    fill(settings, "headers", "c")
    (settings.cache / "headers/link").symlink_to("/usr")
    found = {entry.kind: entry for entry in entries(settings)}
    assert set(found) == {"headers", "sources"}
    assert found["sources"].files == 2 and 100_000 <= found["sources"].bytes < 120_000
    assert found["headers"].files == 2 and found["headers"].bytes < 70_000


def test_clearing_one_kind_leaves_the_others(settings):
    gone, kept = fill(settings, "sources", "a"), fill(settings, "headers", "c")
    assert clear(settings, ["sources"]) >= 50_000
    assert not gone.exists() and kept.exists()
    clear(settings)
    assert not kept.exists()


def test_a_kind_nobody_knows(settings):
    fill(settings, "parses", "a")
    with pytest.raises(BadInput, match=r"no kind 'sauces'.*parses.*sources"):
        clear(settings, ["sauces"])
    clear(settings, ["parses", "toolchain"])


def test_a_link_to_a_shared_cache(settings, tmp_path):
    (tmp_path / "shared").mkdir()
    settings.home.mkdir()
    settings.cache.symlink_to(tmp_path / "shared")
    item = fill(settings, "sources", "a")
    assert item.parent == tmp_path / "shared/sources"
    assert clear(settings) >= 50_000 and not item.exists()


def test_what_another_process_uses_stays_until_it_ends(settings):
    used, free = fill(settings, "sources", "used"), fill(settings, "sources", "free")
    code = "import sys; from pathlib import Path; from astra_integrate.sources.cache import hold\n"
    code += "hold(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, used],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(module.__file__).parents[2])},
    ) as user:
        assert user.stdout.readline() == "held\n"
        clear(settings)
        assert used.exists() and not free.exists()
        user.communicate("")
    clear(settings)
    assert not used.exists()


def test_what_is_being_built_stays(settings):
    item = place(settings, "sources") / "new"
    with locked(item), staged(item) as building:
        building.mkdir()
        clear(settings)
        (building / "data").write_text("x")
    assert (item / "data").read_text() == "x"


def test_a_build_that_fails_leaves_nothing(settings):
    item = place(settings, "sources") / "new"
    with pytest.raises(RuntimeError), staged(item) as building:
        building.mkdir()
        (building / "data").write_text("x")
        raise RuntimeError("stopped")
    assert list(item.parent.iterdir()) == []


def test_left_overs_of_the_dead_go_those_of_the_living_stay(settings):
    folder = place(settings, "sources")
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    old = folder / f".tmp-x-{dead.stdout.strip()}-0123abcd"
    running = folder / f".tmp-x-{os.getppid()}-0123abcd"
    old.mkdir()
    running.mkdir()
    clear(settings)
    assert not old.exists() and running.exists()
    old.mkdir()
    with staged(folder / "x") as building:
        building.mkdir()
    assert not old.exists() and running.exists()


def test_holding_the_same_item_twice_is_one_hold(settings):
    item = fill(settings, "sources", "a")
    assert hold(hold(item)) == item


def test_a_damaged_note_counts_as_none(tmp_path):
    write_note(tmp_path / "note", {"a": 1})
    assert read_note(tmp_path / "note") == {"a": 1}
    for text in ("", "{", "[1]", "\xff"):
        (tmp_path / "note").write_text(text, encoding="latin-1")
        assert read_note(tmp_path / "note") is None
    assert read_note(tmp_path / "absent") is None
