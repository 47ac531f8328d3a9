"""``astra runs`` and ``astra report`` on a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from astra_integrate import cli
from astra_integrate.records import RunResult
from astra_integrate.store import Run, Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASTRA_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def finished(home: Path) -> Run:
    with Store(home) as store, store.create("vllm==1", "ns::scale", "scale", {"rounds": 5}) as run:
        run.record("slice", "key", "note", "[red]text[/red]")
        run.artefact("slice.cu", "int x;")
        run.finish(
            RunResult(
                run=run.id,
                source="vllm==1",
                kernel="ns::scale",
                op="scale",
                arch="sm_90a",
                model="rules",
                outcome="nothing to change",
                reason="already [vectorised]",
            )
        )
        return run


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:  # type: ignore[type-arg]
    assert cli.run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


def test_list(home: Path, finished: Run, capsys: pytest.CaptureFixture[str]) -> None:
    (listed,) = ask(capsys, "runs", "list")["runs"]
    assert (listed["id"], listed["outcome"], listed["options"]) == (finished.id, "nothing to change", {"rounds": 5})
    assert listed["writer"] is None
    assert cli.run(["runs", "list"]) == 0
    out = capsys.readouterr().out
    assert finished.id in out and "nothing to change" in out and "vllm==1" in out


def test_a_run_that_goes_on_is_listed_with_its_process(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import os

    with Store(home) as store, store.create("vllm==1", "scale", None, {}) as run:
        assert cli.run(["runs", "list"]) == 0
        assert f"running (process {os.getpid()})" in capsys.readouterr().out
        assert cli.run(["report", run.id]) == 0
        capsys.readouterr()
    assert cli.run(["runs", "show"]) == 0
    assert f"astra optimize --resume {run.id}" in capsys.readouterr().out


def test_show(home: Path, finished: Run, capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(capsys, "runs", "show", "last")
    assert shown["result"]["reason"] == "already [vectorised]"
    assert [event["kind"] for event in shown["events"]] == ["note", "RunResult"]
    assert [file["name"] for file in shown["files"]] == ["slice.cu"]
    assert cli.run(["runs", "show", finished.id]) == 0
    out = capsys.readouterr().out
    assert "already [vectorised]" in out and "slice" in out and str(finished.folder) in out


def test_remove_takes_all_or_none(home: Path, finished: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["runs", "remove", finished.id, "none-such"]) == 2
    assert finished.folder.exists()
    capsys.readouterr()
    assert ask(capsys, "runs", "remove", finished.id, finished.id) == {"removed": [finished.id]}
    assert not finished.folder.exists() and Store(home).runs() == []


def test_report_writes_the_page(home: Path, finished: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ask(capsys, "report", finished.id)
    assert Path(told["report"]) == finished.folder / "report.html"
    assert "already [vectorised]" in Path(told["report"]).read_text(encoding="utf-8")
    assert told["summary"][1] == "  reason       already [vectorised]"
    other = tmp_path / "folder" / "page.html"
    assert cli.run(["report", "--out", str(other)]) == 0
    assert capsys.readouterr().out.endswith(f"{other}\n") and other.is_file()


def test_report_opens_the_browser_on_request(
    home: Path, finished: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert cli.run(["report"]) == 0 and opened == []
    assert cli.run(["report", "--open"]) == 0 and opened == [(finished.folder / "report.html").as_uri()]
