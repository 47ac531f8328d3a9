"""The right file of the right version, and a clear line when there is none."""

from __future__ import annotations

import platform

import pytest

from astra_integrate.errors import BadInput, FetchFailed
from astra_integrate.settings import load
from astra_integrate.sources import pip_configuration
from astra_integrate.sources.index import find

MACHINE = platform.machine()


@pytest.fixture
def releases(index):
    for version in ("0.9.0", "0.12.0", "0.12.1", "0.13.0rc1"):
        index.add(f"small-{version}.tar.gz", version.encode())
    index.add("small-0.14.0-py3-none-any.whl", b"wheel only")
    return index


@pytest.mark.parametrize("as_json", [True, False])
def test_exact_newest_and_ranges(releases, settings, as_json):
    releases.json = as_json
    assert find("small", "0.12.0", "sdist", settings).filename == "small-0.12.0.tar.gz"
    assert find("Small", "==0.12", "sdist", settings).sha256 == releases.checksums["small-0.12.0.tar.gz"]
    assert find("small", "", "sdist", settings).filename == "small-0.12.1.tar.gz"
    assert find("small", "<0.12", "sdist", settings).filename == "small-0.9.0.tar.gz"
    assert find("small", "==0.13.0rc1", "sdist", settings).filename == "small-0.13.0rc1.tar.gz"


def test_unknown_version_names_near_and_newest(releases, settings):
    with pytest.raises(
        BadInput, match=r"small 0\.12\.7 is not on.*Near: 0\.12\.1, 0\.12\.0.*newest: 0\.13\.0rc1, 0\.9\.0"
    ):
        find("small", "0.12.7", "sdist", settings)


def test_a_version_without_that_kind_says_what_there_is(releases, settings):
    with pytest.raises(
        BadInput, match=r"small 0\.14\.0 has no sdist .*only: wheel.*newest version with one is 0\.13\.0rc1"
    ):
        find("small", "0.14.0", "sdist", settings)
    with pytest.raises(BadInput, match=r"small 0\.9\.0 has no fitting wheel .*only: sdist"):
        find("small", "0.9.0", "wheel", settings)


def test_unknown_project(releases, settings):
    with pytest.raises(BadInput, match="No package index has the project 'smal'"):
        find("smal", "", "sdist", settings)


def test_yanked_files_only_when_asked_for_exactly(releases, settings):
    releases.yanked.add("small-0.12.1.tar.gz")
    assert find("small", "", "sdist", settings).filename == "small-0.12.0.tar.gz"
    assert find("small", "0.12.1", "sdist", settings).filename == "small-0.12.1.tar.gz"


def test_headers_come_from_the_same_wheel_for_everybody(index, settings):
    for tag in ("cp313-cp313", "cp311-cp311", "cp310-cp310", "cp313-cp313t"):
        index.add(f"small-1.0-{tag}-manylinux_2_99_{MACHINE}.whl", b"")
    index.add("small-1.0-cp311-cp311-win_amd64.whl", b"")
    index.add("small-1.0-cp311-cp311-macosx_11_0_arm64.whl", b"")
    index.add("small-1.1-cp311-cp311-win_amd64.whl", b"")
    chosen = find("small", "", "wheel", settings, runnable=False)
    assert chosen.filename == f"small-1.0-cp311-cp311-manylinux_2_99_{MACHINE}.whl"


def test_what_is_run_must_run_here(index, settings):
    index.add(f"small-1.0-py3-none-manylinux_2_17_{MACHINE}.whl", b"")
    index.add(f"small-2.0-py3-none-manylinux_2_99_{MACHINE}.whl", b"")
    index.add("small-2.0-py3-none-win_amd64.whl", b"")
    assert str(find("small", "", "wheel", settings).version) == "1.0"


def test_a_busy_index_is_asked_again(releases, settings):
    releases.failing = 2
    assert find("small", "0.12.0", "sdist", settings).version
    assert len(releases.asked) == 3


def test_no_network_and_a_cold_cache(closed_port, tmp_path):
    with pytest.raises(FetchFailed) as caught:
        find("small", "0.12.0", "sdist", load(home=tmp_path, index_url=closed_port))
    assert "small 0.12.0 is not in the cache" in caught.value.message and "no connection" in caught.value.message
    assert "ASTRA_INDEX_URL" in caught.value.way_out and str(tmp_path) in caught.value.way_out


def test_offline_asks_nobody_but_takes_what_lies_in_downloads(releases, settings, tmp_path):
    offline = load(home=settings.home, index_url=releases.url, offline=True)
    with pytest.raises(FetchFailed, match="ASTRA_OFFLINE"):
        find("small", "", "sdist", offline)
    (settings.cache / "downloads/small-0.11.0.tar.gz").write_bytes(b"put there by hand")
    (settings.cache / "downloads/notes.txt").write_bytes(b"no artifact")
    assert find("small", "", "sdist", offline).filename == "small-0.11.0.tar.gz"
    assert releases.asked == []


@pytest.mark.parametrize("url", ["nonsense", "http://", "htp://x/simple"])
def test_a_url_that_is_none(tmp_path, url):
    with pytest.raises(FetchFailed, match=r"can't be reached|can't be fetched"):
        find("small", "", "sdist", load(home=tmp_path, index_url=url))


def test_the_second_index_serves_what_the_first_has_not(releases, tmp_path, monkeypatch):
    folder = tmp_path / "simple/small"
    folder.mkdir(parents=True)
    (tmp_path / "small-7.0.tar.gz").write_bytes(b"seven")
    (folder / "index.html").write_text('<a href="../../small-7.0.tar.gz">small-7.0.tar.gz</a>')
    indexes = (releases.url, "file:///does/not/exist", (tmp_path / "simple").as_uri())
    setup = pip_configuration.Configuration(indexes=indexes)
    monkeypatch.setattr("astra_integrate.sources.index.configuration", lambda settings: setup)
    assert find("small", "7.0", "sdist", load(home=tmp_path)).url == (tmp_path / "small-7.0.tar.gz").as_uri()
    assert find("small", "", "sdist", load(home=tmp_path)).filename == "small-0.12.1.tar.gz"


def test_a_password_in_the_url_is_not_shown(closed_port, tmp_path):
    url = closed_port.replace("http://", "http://user:hunter2@")
    with pytest.raises(FetchFailed) as caught:
        find("small", "", "sdist", load(home=tmp_path, index_url=url))
    assert "hunter2" not in str(caught.value)
