"""``astra reinject`` on the records of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from astra_integrate import cli
from astra_integrate.records import (
    Candidate,
    CompileFlags,
    Declaration,
    Extent,
    Kernel,
    Replacement,
    Slice,
    Source,
    digest_of,
)
from astra_integrate.toolchain.discovery import Toolchain

KERNEL = "__global__ void k(float* p) { p[0] = 1; }"
HOST = "void op(float* p) { k<<<1, 1>>>(p); }"
NEW = "__global__ void k(float* p) { p[0] = 2; }"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what a run leaves; the source beside it."""
    monkeypatch.setenv("ASTRA_HOME", str(tmp_path / "home"))
    root = tmp_path / "source"
    (root / "csrc").mkdir(parents=True)
    text = f"{KERNEL}\n\n{HOST}\n"
    (root / "csrc" / "a.cu").write_text(text)

    def extent(part: str) -> Extent:
        start = text.index(part)
        return Extent(file="csrc/a.cu", start=start, end=start + len(part), bytes_digest=digest_of(part))

    slice = Slice(
        source=Source(framework="vllm", version="1", spec="vllm==1", kind="path", root=str(root), content="abc"),
        unit="csrc/a.cu",
        arch="sm_90a",
        kernel=Kernel(name="k", extent=extent(KERNEL), signature="", body_hash=""),
        op="op",
        host_function="op",
        declarations=(
            Declaration(
                id="k",
                names=("k",),
                kind="",
                role="device",
                order=0,
                extent=extent(KERNEL),
                text=KERNEL,
                is_kernel=True,
            ),
            Declaration(id="op", names=("op",), kind="", role="host", order=1, extent=extent(HOST), text=HOST),
        ),
        instantiations=("k",),
        flags=CompileFlags(standard="c++17"),
    )
    candidate = Candidate(
        id="c1",
        slice_digest=slice.digest,
        replaced=(Replacement(declaration="k", text=NEW),),
        author="test",
        strategy="two",
    )
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "slice.json").write_text(slice.to_json())
    (folder / "candidate.json").write_text(candidate.to_json())
    return folder


def _json(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict:  # type: ignore[type-arg]
    assert cli.run(["reinject", *map(str, arguments), "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


def test_in_again_and_out(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checked = _json(capsys, run, "--check")
    assert (checked["state"], checked["files"]) == ("fits", ["csrc/a.cu"]) and not (run / "framework").exists()
    done = _json(capsys, run)
    assert (done["state"], done["impact"]) == ("applied", ["op"])
    assert f"+__global__ void k{done['marker']}(float* p) {{ p[0] = 2; }}" in done["diff"]
    assert _json(capsys, run)["state"] == "already applied"
    assert _json(capsys, run, "--check")["state"] == "already applied"
    assert _json(capsys, run, "--undo")["state"] == "undone"
    assert (run / "framework/csrc/a.cu").read_bytes() == (run.parent / "source/csrc/a.cu").read_bytes()
    assert _json(capsys, run, "--undo")["state"] == "nothing to undo"


def test_for_people(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["reinject", str(run), "--out", str(run.parent / "there")]) == 0
    shown = capsys.readouterr().out
    assert f"applied to csrc/a.cu in {run.parent / 'there'}" in shown
    assert "only op is reached" in shown and "git apply" in shown


def test_compile_proves_it(run: Path, capsys: pytest.CaptureFixture[str], toolchain: Toolchain) -> None:
    document = _json(capsys, run, "--compile")
    assert document["compile"]["same_sass"] is True, document
    assert document["compile"]["marked_kernels"] == [f"k{document['marker']}"]


def test_a_changed_source_is_one_line_and_exit_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run.parent / "source/csrc/a.cu"
    path.write_text(path.read_text().replace("p[0] = 1", "p[0] = 3"))
    assert cli.run(["reinject", str(run)]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and "csrc/a.cu has changed" in captured.err
    assert not (run / "framework").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nowhere"], "nowhere"), (["RUN", "--check", "--undo"], "exclude"), (["EMPTY"], "no candidate.json")],
)
def test_bad_input_is_one_line_and_exit_2(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (run.parent / "empty").mkdir()
    (run.parent / "empty" / "slice.json").write_text((run / "slice.json").read_text())
    names = {"RUN": str(run), "EMPTY": str(run.parent / "empty")}
    assert cli.run(["reinject", *(names.get(a, a) for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert words in captured.err and captured.err.count("\n") == 1


def test_a_record_that_is_damaged(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "candidate.json").write_text('{"id": 3}')
    assert cli.run(["reinject", str(run)]) == 2
    assert "can't be read" in capsys.readouterr().err
