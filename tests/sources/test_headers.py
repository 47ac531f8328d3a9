"""Headers out of a big remote wheel, by parts where the server gives parts."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput, FetchFailed
from astra_integrate.frameworks.base import HeaderNeed
from astra_integrate.settings import load
from astra_integrate.sources.headers import header_folder, header_includes

NAME = "big-2.0-py3-none-any.whl"


def need(**changes) -> HeaderNeed:
    return HeaderNeed(
        **{"project": "big", "version": "2.0", "prefix": "big/include", "include": ("big/include",), **changes}
    )


@pytest.fixture
def big(index, zipped):
    """A wheel of 6 MB whose headers lie in two places between libraries."""
    content = {"big/lib/one.so": os.urandom(2 << 20)}
    for number in range(50):
        content[f"big/include/a/{number}.h"] = f"int a{number};".encode() * 40
        content[f"big/code/{number}.py"] = os.urandom(100)
    content |= {"big/lib/two.so": os.urandom(2 << 20)}
    content |= {f"big/include/b{number}.h": os.urandom(500) for number in range(50)}
    content |= {"big/lib/three.so": os.urandom(2 << 20), "big-2.0.dist-info/RECORD": b""}
    index.add(NAME, zipped(content))
    return {name: body for name, body in content.items() if name.startswith("big/include/")}


def files(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def fetched(index) -> int:
    """Bytes of the wheel that ranges asked for."""
    total = 0
    for line in index.sent(NAME):
        first, _, last = line.rpartition("bytes=")[2].partition("-")
        total += int(last) - int(first) + 1 if first else int(last)
    return total


def test_only_the_spans_with_headers_travel(index, settings, big):
    root = header_folder(need(), settings)
    assert files(root) == big
    assert len(index.sent(NAME)) <= 4 and fetched(index) < 300_000
    assert not (settings.cache / "downloads").exists()


def test_the_list_of_files_lies_beside_the_folder(settings, big):
    root = header_folder(need(), settings)
    note = json.loads(root.with_name(f"{root.name}.json").read_text())
    assert note["files"] == sorted(big) and note["wheel"] == NAME and len(note["digest"]) == 64


def test_a_server_without_ranges_gives_the_whole_wheel(index, settings, big, capfd):
    index.ranges = False
    assert files(header_folder(need(), settings)) == big
    assert "gives no parts" in " ".join(capfd.readouterr().err.split())
    assert [path.name for path in (settings.cache / "downloads").iterdir()] == [NAME]


def test_without_ranges_the_disk_is_checked_for_the_whole_wheel(index, settings, big):
    index.ranges = False
    index.sizes[NAME] = 1 << 60
    with pytest.raises(FetchFailed, match="No disk space"):
        header_folder(need(), settings)
    assert list((settings.cache / "headers").iterdir()) == []


def test_warm_needs_no_network_and_a_free_version_takes_what_is_there(settings, big, closed_port):
    root = header_folder(need(), settings)
    alone = load(home=settings.home, index_url=closed_port)
    assert header_folder(need(), alone) == root
    assert header_folder(need(version=None, specifier=">=1,<3"), alone) == root
    with pytest.raises(FetchFailed):
        header_folder(need(version=None, specifier=">=3"), alone)
    with pytest.raises(FetchFailed):
        header_folder(need(prefix="big/lib"), alone)


@pytest.mark.parametrize("at", [0.05, 0.45, 0.9])
def test_a_byte_that_changed_on_the_way_is_noticed(index, settings, zipped, at):
    index.add(NAME, zipped({f"big/include/{number}.h": os.urandom(2000) for number in range(40)}))
    whole = bytearray(index.files[NAME])
    whole[int(len(whole) * at)] ^= 0xFF
    index.files[NAME] = bytes(whole)
    with pytest.raises((BadInput, FetchFailed)):
        header_folder(need(), settings)
    assert list((settings.cache / "headers").iterdir()) == []


def test_ranges_that_arrive_cut_off_leave_nothing(index, settings, big):
    index.cut = 5
    with pytest.raises(FetchFailed, match=r"Headers of big-2.0"):
        header_folder(need(), settings)
    assert list((settings.cache / "headers").iterdir()) == []
    index.cut = 0
    assert files(header_folder(need(), settings)) == big


def test_ranges_that_hold_less_than_they_say_leave_nothing(index, settings, big):
    index.short = 5
    with pytest.raises(FetchFailed, match=r"Headers of big-2\.0"):
        header_folder(need(), settings)
    assert list((settings.cache / "headers").iterdir()) == []


def test_a_wheel_without_the_folder(settings, big):
    with pytest.raises(BadInput, match="has no folder 'big/nothing/'"):
        header_folder(need(prefix="big/nothing"), settings)
    assert list((settings.cache / "headers").iterdir()) == []


def test_an_installation_of_exactly_that_version_serves(settings, index):
    version = importlib.metadata.version("numpy")
    root = header_folder(HeaderNeed("numpy", version, "numpy/_core/include", ()), settings)
    assert (root / "numpy/_core/include/numpy/arrayobject.h").is_file()
    assert index.asked == []


def test_another_version_installed_does_not_serve(settings, index, zipped):
    index.add("numpy-0.0.1-py3-none-any.whl", zipped({"numpy/_core/include/x.h": b"x"}))
    root = header_folder(HeaderNeed("numpy", "0.0.1", "numpy/_core/include", ()), settings)
    assert (root / "numpy/_core/include/x.h").is_file()


def test_optional_needs_are_left_out_others_are_not(settings, big, small, tmp_path):
    missing = need(project="absent", optional=True)
    small.needs = (need(include=("big/include", "big/include/a")), missing)
    root = header_folder(need(), settings)
    assert header_includes(small, tmp_path, settings) == (root / "big/include", root / "big/include/a")
    small.needs = (need(project="absent"),)
    with pytest.raises(BadInput, match="absent"):
        header_includes(small, tmp_path, settings)


def test_a_64_bit_zip(index, settings, monkeypatch):
    import io
    import zipfile

    made = io.BytesIO()
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("big/lib/one.so", os.urandom(500_000))
        file.writestr("big/include/x.h", b"int x;")
    monkeypatch.undo()
    whole = bytearray(made.getvalue())
    end = whole.rindex(b"PK\x05\x06")
    assert b"PK\x06\x06" in whole
    whole[end + 16 : end + 20] = b"\xff" * 4  # as in a file beyond 4 GB: the true offset is in the 64-bit record
    index.add(NAME, bytes(whole))
    assert files(header_folder(need(), settings)) == {"big/include/x.h": b"int x;"}
