"""The applier: bytes exact, nothing half-applied, applied twice as once, taken back byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astra_integrate.errors import BadInput, CheckFailed
from astra_integrate.records import Edit, Extent
from astra_integrate.reinject.apply import apply, digest, line_end, patched, undo
from astra_integrate.reinject.edits import sealed


def _edit(data: bytes, start: int, end: int, text: str, file: str = "a.cu", context: tuple[Extent, ...] = ()) -> Edit:
    return Edit(extent=_extent(data, start, end, file), text=text, context=context)


def _extent(data: bytes, start: int, end: int, file: str = "a.cu") -> Extent:
    return Extent(file=file, start=start, end=end, bytes_digest=digest(data[start:end]))


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


_PIECES = st.sampled_from([b"\n", b"\r\n", b"\r", b"int x;", b"// \xff\xfe", b"}", b"aa", b"\xc3\xa9", b" "])
_TEXTS = st.text(alphabet="ab}\n\u00e9 ", max_size=12).map(lambda t: t.replace("b", "\r\n"))


@st.composite
def _cases(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, int, str]]]:
    """A file and edits of it that don't overlap."""
    data = b"".join(draw(st.lists(_PIECES, max_size=40))) * draw(st.sampled_from([1, 1, 1, 40]))
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    return data, [(start, end, draw(_TEXTS)) for start, end in spans]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=_cases())
def test_apply_again_and_undo(case: tuple[bytes, list[tuple[int, int, str]]], tmp_path: Path) -> None:
    data, spans = case
    path = tmp_path / "a.cu"
    path.write_bytes(data)
    edits = sealed(tmp_path, [_edit(data, *span) for span in spans])
    done = apply(tmp_path, edits)
    expected = patched(data, edits)
    assert path.read_bytes() == expected
    again = apply(tmp_path, edits)
    assert not again.files and path.read_bytes() == expected
    undo(tmp_path, done.undo)
    assert path.read_bytes() == data
    assert _tree(tmp_path) == {"a.cu": data}, "no temporary file is left"


@settings(max_examples=200, deadline=None)
@given(case=_cases())
def test_what_is_outside_of_the_edits_stays(case: tuple[bytes, list[tuple[int, int, str]]]) -> None:
    data, spans = case
    new = patched(data, [_edit(data, *span) for span in spans])
    kept = [data[a:b] for a, b in zip([0, *(s[1] for s in spans)], [*(s[0] for s in spans), len(data)], strict=True)]
    place = 0
    for piece in kept:
        found = new.find(piece, place)
        assert found >= 0
        place = found + len(piece)
    assert new.startswith(kept[0]) and new.endswith(kept[-1])


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_new_lines_take_the_files_line_end(tmp_path: Path, end: bytes) -> None:
    data = end.join([b"one", b"two", b"three"])
    (tmp_path / "a.cu").write_bytes(data)
    place = data.index(b"two")
    apply(tmp_path, [_edit(data, place, place + 3, "2\r\nzwei\ndeux")])
    assert (tmp_path / "a.cu").read_bytes() == end.join([b"one", b"2", b"zwei", b"deux", b"three"])


def test_in_a_mixed_file_the_line_before_decides_and_old_lines_keep_theirs(tmp_path: Path) -> None:
    data = b"a\r\nb\r\nc\nd\n"
    (tmp_path / "a.cu").write_bytes(data)
    apply(tmp_path, [_edit(data, 6, 6, "x\n"), _edit(data, 10, 10, "y\n")])
    assert (tmp_path / "a.cu").read_bytes() == b"a\r\nb\r\nx\r\nc\nd\ny\n"


def test_the_first_line_takes_the_next_lines_end_and_a_file_of_one_line_has_none() -> None:
    assert line_end(b"a\r\nb", 0, 0) == b"\r\n"
    assert line_end(b"a", 0, 1) == b"\n"
    assert line_end(b"", 0, 0) == b"\n"


def test_no_newline_at_the_end_is_not_mended(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"a\n}")
    apply(tmp_path, [_edit(b"a\n}", 3, 3, "\nb")])
    assert (tmp_path / "a.cu").read_bytes() == b"a\n}\nb"


def test_a_changed_byte_refuses_everything(tmp_path: Path) -> None:
    a, b = b"alpha beta", b"gamma delta"
    (tmp_path / "a.cu").write_bytes(a)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.cuh").write_bytes(b.replace(b"delta", b"DELTA"))
    before = _tree(tmp_path)
    edits = [_edit(a, 0, 5, "A"), _edit(b, 6, 11, "D", "sub/b.cuh")]
    with pytest.raises(CheckFailed, match=r"sub/b\.cuh has changed: bytes 6–11"):
        apply(tmp_path, edits)
    assert _tree(tmp_path) == before


def test_an_insertion_needs_its_anchor(tmp_path: Path) -> None:
    data = b"void f() {}\nvoid g() {}\n"
    insertion = _edit(data, 11, 11, "\nvoid h() {}", context=(_extent(data, 0, 11),))
    (tmp_path / "a.cu").write_bytes(data.replace(b"f()", b"F()"))
    with pytest.raises(CheckFailed, match="bytes 0–11"):
        apply(tmp_path, [insertion])
    (tmp_path / "a.cu").write_bytes(b"// moved\n" + data)
    with pytest.raises(CheckFailed, match="bytes 0–11"):
        apply(tmp_path, [insertion])
    (tmp_path / "a.cu").write_bytes(data[:5])
    with pytest.raises(CheckFailed, match="bytes 0–11"):
        apply(tmp_path, [insertion])


def test_new_text_that_stands_there_by_chance_is_not_taken_for_the_edit(tmp_path: Path) -> None:
    data = b"alpha beta gamma"
    (tmp_path / "a.cu").write_bytes(data)
    edits = sealed(tmp_path, [_edit(data, 6, 10, "be")])
    (tmp_path / "a.cu").write_bytes(b"alpha better gamma")
    with pytest.raises(CheckFailed):
        apply(tmp_path, edits)


def test_a_file_that_differs_elsewhere_is_still_edited_and_known_again(tmp_path: Path) -> None:
    data = b"void f() {}\nvoid g() {}\n"
    (tmp_path / "a.cu").write_bytes(data)
    edits = sealed(tmp_path, [_edit(data, 11, 11, "\nvoid h() {}", context=(_extent(data, 0, 11),))])
    more = b" " * 80 + b"// more\r\n"
    (tmp_path / "a.cu").write_bytes(data + more)
    done = apply(tmp_path, edits)
    assert (tmp_path / "a.cu").read_bytes() == b"void f() {}\nvoid h() {}\nvoid g() {}\n" + more
    assert apply(tmp_path, edits).files == ()
    undo(tmp_path, done.undo)
    assert (tmp_path / "a.cu").read_bytes() == data + more


def test_of_two_files_the_one_that_is_still_untouched_is_edited(tmp_path: Path) -> None:
    """What a kill between two renames leaves."""
    for file in ("a.cu", "b.cu"):
        (tmp_path / file).write_bytes(b"one")
    edits = sealed(tmp_path, [_edit(b"one", 0, 3, "1", file) for file in ("a.cu", "b.cu")])
    (tmp_path / "a.cu").write_bytes(b"1")
    done = apply(tmp_path, edits)
    assert (done.files, done.already) == (("b.cu",), ("a.cu",))
    assert "already applied: a.cu" in done.summary
    assert _tree(tmp_path) == {"a.cu": b"1", "b.cu": b"1"}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"one")
    assert apply(tmp_path, [_edit(b"one", 0, 3, "1")], dry_run=True).files == ("a.cu",)
    assert _tree(tmp_path) == {"a.cu": b"one"}


def test_undo_of_something_changed_since_refuses(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"one two")
    done = apply(tmp_path, [_edit(b"one two", 0, 3, "1")])
    (tmp_path / "a.cu").write_bytes(b"2 two")
    with pytest.raises(CheckFailed, match="bytes 0–1 are"):
        undo(tmp_path, done.undo)


@pytest.mark.parametrize("file", ["../a.cu", "/etc/hostname", "link/a.cu"])
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, file: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "a.cu").write_bytes(b"one")
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(BadInput, match="leads out"):
        apply(root, [_edit(b"one", 0, 3, "1", file)])


def test_a_file_that_isnt_there_and_edits_that_overlap_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"a\.cu, which is to be edited"):
        apply(tmp_path, [_edit(b"one", 0, 3, "1")])
    (tmp_path / "a.cu").write_bytes(b"one")
    with pytest.raises(BadInput, match="overlap"):
        apply(tmp_path, [_edit(b"one", 0, 2, "1"), _edit(b"one", 1, 3, "1")])


def test_the_files_mode_stays(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"one")
    (tmp_path / "a.cu").chmod(0o751)
    apply(tmp_path, [_edit(b"one", 0, 3, "1")])
    assert (tmp_path / "a.cu").stat().st_mode & 0o777 == 0o751


def test_a_rename_that_fails_takes_the_earlier_ones_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("a.cu", "b.cu"):
        (tmp_path / file).write_bytes(b"one")
    real = os.replace

    def failing(source: str | Path, target: str | Path) -> None:
        if Path(target).name == "b.cu":
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError):
        apply(tmp_path, [_edit(b"one", 0, 3, "1", file) for file in ("a.cu", "b.cu")])
    assert _tree(tmp_path) == {"a.cu": b"one", "b.cu": b"one"}
