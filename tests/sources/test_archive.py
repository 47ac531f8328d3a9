"""Hostile and damaged archives are refused in one line and leave nothing; good ones come out whole."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from astra_integrate.errors import BadInput, FetchFailed
from astra_integrate.sources import archive
from astra_integrate.sources.archive import Limits, unpack


def entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def refused(tmp_path: Path, name: str, content: bytes, **options: object) -> str:
    """Unpack must fail with BadInput and leave exactly the archive behind; the message."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput) as caught:
        unpack(tmp_path / name, tmp_path / "out", **options)  # type: ignore[arg-type]
    assert tree(tmp_path) == {name}
    assert name in caught.value.message and "\n" not in str(caught.value)
    return caught.value.message


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", ""])
def test_tar_unpacks_whole_with_links_inside_and_the_executable_bit(tmp_path, tar, suffix):
    script = tarfile.TarInfo("p-1/run")
    script.mode = 0o755
    content = {
        "p-1/a/x.cu": b"kernel",
        "p-1/link": entry("p-1/link", tarfile.SYMTYPE, "a/x.cu"),
        "p-1/hard": entry("p-1/hard", tarfile.LNKTYPE, "p-1/a/x.cu"),
        "p-1/run": script,
    }
    path = tmp_path / f"p.tar{'.' if suffix else ''}{suffix}"
    path.write_bytes(tar(content, suffix))
    unpack(path, tmp_path / "out", strip=True)
    assert tree(tmp_path / "out") == {"a", "a/x.cu", "link", "hard", "run"}
    assert (tmp_path / "out/link").read_bytes() == (tmp_path / "out/hard").read_bytes() == b"kernel"
    assert os.access(tmp_path / "out/run", os.X_OK) and not os.access(tmp_path / "out/a/x.cu", os.X_OK)


def test_zip_unpacks_only_what_is_kept(tmp_path, zipped):
    modes = {"w/bin/tool": 0o100755}
    (tmp_path / "w.whl").write_bytes(zipped({"w/bin/tool": b"1", "w/x.h": b"2", "other/y.h": b"3"}, modes))
    unpack(tmp_path / "w.whl", tmp_path / "out", keep=lambda name: name.startswith("w/"))
    assert tree(tmp_path / "out") == {"w", "w/bin", "w/bin/tool", "w/x.h"}
    assert os.access(tmp_path / "out/w/bin/tool", os.X_OK) and not os.access(tmp_path / "out/w/x.h", os.X_OK)


@pytest.mark.parametrize("name", ["/etc/passwd", "../evil", "a/../../evil", "a/.."])
def test_paths_that_lead_out_are_refused(tmp_path, tar, zipped, name):
    assert "outside" in refused(tmp_path, "p.tar.gz", tar({"ok": b"1", name: b"2"}))
    (tmp_path / "p.tar.gz").unlink()
    assert "outside" in refused(tmp_path, "p.zip", zipped({"ok": b"1", name: b"2"}))
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.parametrize("target", ["/etc", "..", "../..", "a/../.."])
def test_links_that_lead_out_are_refused(tmp_path, tar, zipped, target):
    assert "outside" in refused(tmp_path, "p.tar.gz", tar({"a/x": b"1", "l": entry("l", tarfile.SYMTYPE, target)}))
    (tmp_path / "p.tar.gz").unlink()
    assert "outside" in refused(tmp_path, "p.zip", zipped({"a/x": b"1", "l": target.encode()}, {"l": 0o120777}))


def test_links_that_lead_out_only_together_are_refused(tmp_path, tar):
    content = {
        "deep/a/b/x": b"1",
        "d": entry("deep/a/b/d", tarfile.SYMTYPE, "../.."),
        "f": entry("f", tarfile.SYMTYPE, "deep/a/b/d/../.."),
    }
    assert "outside" in refused(tmp_path, "p.tar.gz", tar(content))


def test_nothing_is_written_through_a_link(tmp_path, tar):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    refused(tmp_path, "p.tar.gz", tar({"l": entry("l", tarfile.SYMTYPE, str(outside)), "l/evil": b"2"}))
    assert not list(outside.iterdir())


def test_hard_links_need_a_file_inside(tmp_path, tar):
    refused(tmp_path, "p.tar.gz", tar({"l": entry("l", tarfile.LNKTYPE, "../../etc/passwd")}))


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(tmp_path, tar, kind):
    assert "device" in refused(tmp_path, "p.tar.gz", tar({"d": entry("d", kind)}))


def test_a_pipe_in_a_zip_is_refused(tmp_path, zipped):
    assert "device" in refused(tmp_path, "p.zip", zipped({"d": b""}, {"d": 0o010644}))


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_bombs_are_refused_by_size_and_by_number(tmp_path, tar, zipped, kind):
    made = tar if kind == "tar.gz" else zipped
    zeros = made({"zeros": bytes(4 << 20)})
    assert len(zeros) < 10_000
    assert "unpacks to" in refused(tmp_path, f"p.{kind}", zeros, limits=Limits(bytes=1 << 20))
    many = made({f"f{number}": b"" for number in range(300)})
    assert "unpacks to" in refused(tmp_path, f"p.{kind}", many, limits=Limits(entries=200))


def test_a_zip_that_understates_its_size_is_refused(tmp_path, zipped):
    honest = zipped({"zeros": bytes(1 << 20)})
    size = (1 << 20).to_bytes(4, "little")
    lying = honest.replace(size, (10).to_bytes(4, "little"))
    assert lying != honest
    refused(tmp_path, "p.zip", lying)


@pytest.mark.parametrize("kind", ["tar.gz", "tar", "zip"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_cut_off_archives_are_refused(tmp_path, tar, zipped, kind, share):
    content = {f"p/f{number}": os.urandom(3000) for number in range(20)}
    whole = zipped(content) if kind == "zip" else tar(content, "" if kind == "tar" else "gz")
    if kind == "tar":
        whole = whole.rstrip(b"\0")
    assert "damaged" in refused(tmp_path, f"p.{kind}", whole[: int(len(whole) * share)])


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path, tar):
    whole = bytearray(tar({"a": b"1" * 600, "b": b"2" * 600, "c": b"3"}, ""))
    second = 512 + 1024
    assert whole[second : second + 1] == b"b"
    whole[second + 148 : second + 156] = b"\xff" * 8
    assert "damaged" in refused(tmp_path, "p.tar", bytes(whole))


def test_entries_that_clash_are_refused(tmp_path, tar):
    refused(tmp_path, "p.tar.gz", tar({"a": b"1", "a/b": b"2"}))


def test_other_files_are_no_archives(tmp_path):
    assert "not an archive" in refused(tmp_path, "p.txt", b"hello")


GOOD_TAR = io.BytesIO()
with tarfile.open(fileobj=GOOD_TAR, mode="w:gz") as _file:
    for _name, _link in (("p/a.cu", ""), ("p/b.h", ""), ("p/l", "a.cu")):
        _info = entry(_name, tarfile.SYMTYPE, _link) if _link else tarfile.TarInfo(_name)
        _info.size = 0 if _link else 700
        _file.addfile(_info, None if _link else io.BytesIO(b"k" * 700))
GOOD_ZIP = io.BytesIO()
with zipfile.ZipFile(GOOD_ZIP, "w", zipfile.ZIP_DEFLATED) as _zip:
    _zip.writestr("p/a.cu", b"k" * 700)
    _zip.writestr("p/b.h", b"h" * 700)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.booleans(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4), st.integers(0, 40))
@example(True, [], 0)
@example(False, [], 0)
def test_any_damage_gives_a_whole_tree_or_one_clear_error(tmp_path_factory, is_tar, changes, cut):
    folder = tmp_path_factory.mktemp("fuzz")
    content = bytearray((GOOD_TAR if is_tar else GOOD_ZIP).getvalue())
    for offset, value in changes:
        content[offset % len(content)] = value
    path = folder / ("p.tar.gz" if is_tar else "p.zip")
    path.write_bytes(content[: len(content) - cut])
    try:
        unpack(path, folder / "out")
    except (BadInput, FetchFailed):
        assert tree(folder) == {path.name}
    else:
        assert {item.name for item in folder.iterdir()} == {path.name, "out"}


def test_no_space_is_said_before_anything_is_written(tmp_path, zipped, monkeypatch):
    (tmp_path / "p.zip").write_bytes(zipped({"a": bytes(1000)}))
    usage = type("usage", (), {"free": 1000})
    monkeypatch.setattr("astra_integrate.sources.disk.shutil.disk_usage", lambda folder: usage)
    with pytest.raises(FetchFailed, match=r"No disk space for p.zip"):
        unpack(tmp_path / "p.zip", tmp_path / "out")
    assert tree(tmp_path) == {"p.zip"}


def test_a_write_that_fails_for_space_leaves_nothing(tmp_path, zipped):
    (tmp_path / "p.zip").write_bytes(zipped({"small": b"1", "big": bytes(1 << 20)}))
    code = (
        "import sys; from pathlib import Path; from astra_integrate.sources.archive import unpack\n"
        "from astra_integrate.errors import FetchFailed\n"
        "try: unpack(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "except FetchFailed as error: print(error)\n"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))  # noqa: E731
    root = str(Path(archive.__file__).parents[2])
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "p.zip", tmp_path / "out"],
        preexec_fn=limit,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.startswith("No disk space left in"), ran.stderr
    assert tree(tmp_path) == {"p.zip"}
