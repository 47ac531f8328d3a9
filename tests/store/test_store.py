"""Runs: created, continued, listed, removed; one writer; names that are nearly right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.records import RunResult
from astra_integrate.store import Run, Store

RESULT = RunResult(
    run="r", source="vllm==1", kernel="k", op=None, arch="sm_90a", model="rules", outcome="nothing to change"
)


def new(store: Store, kernel: str = "ns::scale_kernel") -> Run:
    return store.create("vllm==1", kernel, None, {"rounds": 5})


def test_an_event_is_found_by_its_key_after_reopening(tmp_path: Path) -> None:
    with Store(tmp_path) as store, new(store) as run:
        run.record("extract", "k1", "Slice", '{"a": 1}')
        run.record("measure", "k2", "Trial", '{"b": "é\\n\u2028"}')
    with Store(tmp_path) as store, store.open(run.id) as again:
        assert again.find("k2") == run_event(2, "measure", "k2", "Trial", '{"b": "é\\n\u2028"}')
        assert again.find("k3") is None
        assert [event.key for event in again.events()] == ["k1", "k2"]
        assert set(again.times()) == {1, 2}


def run_event(sequence: int, stage: str, key: str, kind: str, payload: str):  # type: ignore[no-untyped-def]
    from astra_integrate.records import Event

    return Event(sequence=sequence, stage=stage, key=key, kind=kind, payload=payload)


def test_recording_a_key_twice_keeps_the_first(tmp_path: Path) -> None:
    with Store(tmp_path) as store, new(store) as run:
        first = run.record("extract", "k", "Slice", "one")
        assert run.record("extract", "k", "Slice", "two") == first
        assert len(run.events()) == 1
        with pytest.raises(ValueError, match="extract/Slice"):
            run.record("measure", "k", "Trial", "three")


def test_a_run_id_is_date_op_hash_and_two_equal_requests_are_two_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = new(store), new(store)
    date, name, digest = one.id.split("-")
    assert date.isdigit() and name == "ns_scale_kernel" and len(digest) == 8
    assert one.id != two.id
    assert [info.id for info in store.runs()] == [one.id, two.id]


def test_the_result_is_the_last_one_recorded(tmp_path: Path) -> None:
    with Store(tmp_path) as store, new(store) as run:
        assert run.result() is None and store.runs()[0].outcome is None
        failed = RESULT.model_copy(update={"outcome": "failed"})
        run.finish(failed)
        run.finish(RESULT)
        run.finish(RESULT)
        assert run.result() == RESULT
        assert store.runs()[0].outcome == "nothing to change"
        assert len(run.events()) == 2


def test_a_file_is_registered_by_digest_and_replaced_whole(tmp_path: Path) -> None:
    with Store(tmp_path) as store, new(store) as run:
        path = run.artefact("slices/one.cu", "a\udcff")
        assert path.read_bytes() == b"a\xff" and path == run.folder / "slices/one.cu"
        stamp = path.stat().st_mtime_ns
        run.artefact("slices/one.cu", b"a\xff")
        assert path.stat().st_mtime_ns == stamp
        run.artefact("slices/one.cu", b"b")
        run.artefact("slices/one.cu", b"a\xff")
        assert path.read_bytes() == b"a\xff" and run.artefacts()["slices/one.cu"].bytes == 2
        path.write_bytes(b"tampered")
        assert run.artefact("slices/one.cu", b"a\xff").read_bytes() == b"a\xff"
        assert not list(run.folder.rglob(".new-*"))


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "run.json", "events.jsonl", "writer.lock"])
def test_a_file_of_a_run_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    with Store(tmp_path) as store, new(store) as run, pytest.raises(ValueError, match="no name"):
        run.artefact(name, b"")


def test_a_live_run_cannot_be_resumed_twice_and_the_writer_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = new(store)
    script = (
        "import sys; from pathlib import Path; from astra_integrate.store import Store\n"
        "with Store(Path(sys.argv[1])) as s, s.open(sys.argv[2]): print('open', flush=True); sys.stdin.read()"
    )
    run.close()
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), run.id], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "open\n"
    with pytest.raises(BadInput, match=f"in use by process {other.pid}"):
        store.open(run.id)
    with pytest.raises(BadInput, match=f"in use by process {other.pid}"):
        store.remove(run.id)
    assert store.writer(run.id) == f"process {other.pid}"
    reader = store.open(run.id, write=False)
    with pytest.raises(BadInput, match="reading only"):
        reader.record("a", "b", "c", "d")
    other.kill()
    other.wait()
    assert store.writer(run.id) is None
    with store.open(run.id) as again:
        again.record("a", "b", "c", "d")


def test_run_names_may_be_short_and_wrong_ones_get_suggestions(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = new(store, "alpha_kernel"), new(store, "beta_kernel")
    assert store.resolve("last") == two.id
    assert store.resolve(one.id[:-3]) == one.id
    with pytest.raises(BadInput, match="may be several"):
        store.resolve(one.id[:8])
    with pytest.raises(BadInput, match=f"Did you mean.*{one.id}"):
        store.resolve("alpha_kernel")
    with pytest.raises(BadInput, match="astra runs list"):
        store.resolve("")
    with pytest.raises(BadInput, match="astra runs list"):
        Store(tmp_path / "empty").resolve("last")


def test_removing_a_run_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = new(store), new(store)
    one.record("a", "b", "c", "d")
    one.artefact("x", b"y")
    one.close()
    store.remove(one.id)
    assert [info.id for info in store.runs()] == [two.id]
    assert [entry.name for entry in store.folder.iterdir()] == [two.id]


def test_a_folder_taken_away_or_brought_back_is_followed(tmp_path: Path) -> None:
    with Store(tmp_path) as store, new(store) as run:
        run.record("a", "b", "c", "d")
    elsewhere = run.folder.rename(tmp_path / "elsewhere")
    assert Store(tmp_path).runs() == []
    elsewhere.rename(run.folder)
    with Store(tmp_path) as store:
        assert [event.key for event in store.open(run.id).events()] == ["b"]


def test_a_home_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(BadInput, match="ASTRA_HOME"):
        Store(tmp_path / "home")


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Store(tmp_path) as store:
        bad, good = new(store), new(store)
        bad.close()
        good.close()
    (tmp_path / "store.db").unlink()
    (bad.folder / "run.json").write_text("{")
    assert [info.id for info in Store(tmp_path).runs()] == [good.id]
    assert bad.id in caplog.text


def test_options_come_back(tmp_path: Path) -> None:
    with Store(tmp_path) as store, new(store):
        assert store.runs()[0].options == {"rounds": 5}
        assert json.loads((store.folder / store.runs()[0].id / "run.json").read_text())["options"] == {"rounds": 5}
