"""A candidate into a folder and out again, whatever the files are like."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from astra_integrate.errors import CheckFailed
from astra_integrate.records import Slice
from astra_integrate.reinject.apply import apply
from astra_integrate.reinject.checkout import checkout, run_git
from astra_integrate.reinject.put import Prepared, journal_of, load, prepare, put, save, take_back

HEADER = b"#pragma once\n//! halve device\ninline __device__ float halve(float x) { return x / 2.0f; }\n\nint after;"
UNIT = (
    b'#include "math.cuh"\n'
    b"//! k device kernel\n__global__ void k(float* p) { p[0] = halve(p[0]); }  // caf\xe9\n\n"
    b"//! op host\nvoid op(float* p) {\n  k<<<1, 1>>>(p);\n}\n\nvoid other(float* p) { k<<<1, 1>>>(p); }"
)
NEW = {"halve": "inline __device__ float halve(float x) {\n  return x * 0.5f;\n}"}


def _slice(cut, header: bytes = HEADER, unit: bytes = UNIT) -> Slice:  # type: ignore[no-untyped-def]
    files = {"csrc/math.cuh": header, "csrc/a.cu": unit}
    return cut(files, "op", kernel="k", parameters=(("p", "float *"),))


@pytest.fixture
def prepared(cut, candidate) -> Prepared:  # type: ignore[no-untyped-def]
    slice = _slice(cut)
    return prepare(slice, candidate(slice, NEW))


def _source(prepared: Prepared) -> Path:
    return Path(prepared.slice.source.root)


def test_a_new_folder_becomes_a_copy_with_its_diff(prepared: Prepared, tmp_path: Path) -> None:
    folder, journal = tmp_path / "out", tmp_path / "undo.json"
    done, diff = put(prepared, folder, journal)
    assert done.files == ("csrc/a.cu", "csrc/math.cuh")
    assert prepared.impact.alone
    clean = checkout(prepared.slice.source, ("csrc",), tmp_path / "clean")
    (tmp_path / "p.diff").write_bytes(diff.encode("utf-8", "surrogateescape"))
    subprocess.run(["git", "apply", str(tmp_path / "p.diff")], cwd=clean, check=True)
    assert (clean / "csrc/a.cu").read_bytes() == (folder / "csrc/a.cu").read_bytes()
    assert put(prepared, folder, journal)[0].files == ()
    assert take_back(prepared, folder, journal).files == done.files
    assert run_git(folder, "status", "--porcelain") == b""
    assert take_back(prepared, folder, journal).files == ()


def test_the_source_that_was_sliced_stays_untouched_and_other_launchers_too(prepared: Prepared, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in _source(prepared).rglob("*") if path.is_file()}
    put(prepared, tmp_path / "out", tmp_path / "undo.json")
    assert {path: path.read_bytes() for path in before} == before
    new = (tmp_path / "out" / "csrc" / "a.cu").read_bytes()
    assert b"void other(float* p) { k<<<1, 1>>>(p); }" in new
    removed = run_git(tmp_path / "out", "diff", "--numstat").decode().split("\n")
    assert [line.split("\t")[1] for line in removed if line] == ["1", "0"], "one line of the launcher, nothing else"


def test_a_checkout_of_the_users_own_is_edited_in_place_and_kept_in_a_journal(
    prepared: Prepared, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    (mine / "csrc").mkdir(parents=True)
    for name in ("math.cuh", "a.cu"):
        (mine / "csrc" / name).write_bytes((_source(prepared) / "csrc" / name).read_bytes())
    (mine / "notes.txt").write_text("keep")
    before = {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()}
    journal = journal_of(tmp_path, mine)
    done, diff = put(prepared, mine, journal)
    assert done.files and diff == ""
    assert len(load(journal)) == len(done.undo)
    take_back(prepared, mine, journal)
    assert {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()} == before


def test_a_checkout_that_drifted_is_refused_untouched(prepared: Prepared, tmp_path: Path) -> None:
    """The file moved on upstream: the edit must not land elsewhere, nor make the old file anew."""
    mine = tmp_path / "mine" / "csrc"
    mine.mkdir(parents=True)
    (mine / "math.cuh").write_bytes((_source(prepared) / "csrc/math.cuh").read_bytes())
    drifted = (_source(prepared) / "csrc/a.cu").read_bytes().replace(b"k<<<1, 1>>>(p);\n", b"k<<<1, 2>>>(p);\n")
    (mine / "a.cu").write_bytes(drifted)
    with pytest.raises(CheckFailed, match=r"csrc/a\.cu has changed: bytes \d+–\d+"):
        put(prepared, mine.parent, tmp_path / "undo.json")
    assert (mine / "a.cu").read_bytes() == drifted and not (tmp_path / "undo.json").exists()
    assert sorted(path.name for path in mine.iterdir()) == ["a.cu", "math.cuh"]


def test_undo_needs_no_journal_where_the_source_is_there(prepared: Prepared, tmp_path: Path) -> None:
    folder = checkout(prepared.slice.source, ("csrc",), tmp_path / "out")
    apply(folder, prepared.edits)
    assert take_back(prepared, folder, tmp_path / "none.json").files
    assert run_git(folder, "status", "--porcelain") == b""


@pytest.mark.parametrize("mixed", [False, True])
def test_files_with_crlf_keep_every_line_end(cut, candidate, tmp_path: Path, mixed: bool) -> None:  # type: ignore[no-untyped-def]
    """All lines in CRLF, or the lower half of each file in LF."""

    def crlf(data: bytes) -> bytes:
        lines = data.split(b"\n")
        half = len(lines) // 2 if mixed else len(lines)
        return b"".join(
            line + (b"" if n == len(lines) - 1 else b"\r\n" if n < half else b"\n") for n, line in enumerate(lines)
        )

    slice = _slice(cut, crlf(HEADER), crlf(UNIT))
    prepared = prepare(slice, candidate(slice, NEW))
    _, diff = put(prepared, tmp_path / "out", tmp_path / "undo.json")
    assert diff
    for name in ("csrc/math.cuh", "csrc/a.cu"):
        old = (_source(prepared) / name).read_bytes().split(b"\n")
        new = (tmp_path / "out" / name).read_bytes().split(b"\n")
        kept = [line for line in old if line in new]
        assert len(old) - len(kept) <= 1, "every old line keeps its own end, but for the one that is edited"
        if not mixed:
            assert all(line.endswith(b"\r") for line in new[:-1])
            assert not new[-1].endswith(b"\r"), "no newline at the end, as before"
    take_back(prepared, tmp_path / "out", tmp_path / "undo.json")
    assert run_git(tmp_path / "out", "status", "--porcelain") == b""


def test_journals_hold_any_bytes_and_are_one_a_folder(prepared: Prepared, tmp_path: Path) -> None:
    undo = apply(_source(prepared), prepared.edits, dry_run=True).undo
    save(tmp_path / "j" / "x.json", undo)
    assert load(tmp_path / "j" / "x.json") == undo
    assert journal_of(tmp_path, tmp_path / "a") != journal_of(tmp_path, tmp_path / "b")
