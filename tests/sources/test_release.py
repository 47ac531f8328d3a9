"""Releases and archive files as source trees."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput, FetchFailed
from astra_integrate.settings import load
from astra_integrate.sources.local import path_source
from astra_integrate.sources.release import release_source


def take(small, version, settings):
    return release_source(small, version, f"small=={version}" if version else "small", settings)


@pytest.fixture
def releases(index, sdist):
    for version in ("1.0", "1.1", "2.0rc1"):
        index.add(f"small-{version}.tar.gz", sdist(version))
    return index


def test_a_release_is_unpacked_without_its_top_folder(releases, settings, small):
    source = take(small, "1.0", settings)
    assert (source.framework, source.version, source.kind, source.spec) == ("small", "1.0", "sdist", "small==1.0")
    assert source.content == releases.checksums["small-1.0.tar.gz"]
    assert Path(source.root).name == f"small-1.0-{source.content[:8]}"
    assert (Path(source.root) / "kernels/scale.cu").is_file()


def test_no_version_means_the_newest_stable_one(releases, settings, small):
    assert take(small, None, settings).version == "1.1"


def test_the_second_time_nobody_is_asked(releases, settings, small, closed_port):
    first = take(small, "1.0", settings)
    alone = load(home=settings.home, index_url=closed_port)
    started = time.monotonic()
    assert take(small, "1.0", alone) == first
    assert time.monotonic() - started < 0.5


def test_offline_the_newest_release_in_the_cache_serves(releases, settings, small, closed_port):
    take(small, "1.0", settings)
    assert take(small, None, load(home=settings.home, index_url=closed_port)).version == "1.0"


def test_cold_cache_without_network(small, closed_port, tmp_path):
    with pytest.raises(FetchFailed, match=r"small 1\.0 is not in the cache.*ASTRA_INDEX_URL"):
        take(small, "1.0", load(home=tmp_path, index_url=closed_port))


def test_a_tree_that_was_cleared_is_made_again(releases, settings, small):
    import shutil

    source = take(small, "1.0", settings)
    shutil.rmtree(source.root)
    assert take(small, "1.0", settings) == source and Path(source.root, "VERSION").is_file()


def test_a_release_without_cuda(index, settings, small, sdist):
    index.add("small-3.0.tar.gz", sdist("3.0", cuda=False))
    for _ in range(2):
        with pytest.raises(BadInput, match=r"The sdist of small 3\.0 holds no CUDA source"):
            take(small, "3.0", settings)


def test_a_wheel_is_taken_where_the_framework_ships_its_kernels_in_one(index, settings, small, zipped):
    small.artifact = "wheel"
    index.add("small-1.0-py3-none-any.whl", zipped({"VERSION": b"1.0", "kernels/scale.cu": b"__global__"}))
    source = take(small, "1.0", settings)
    assert source.kind == "wheel" and (Path(source.root) / "kernels/scale.cu").is_file()


def test_a_damaged_release_leaves_no_tree(index, settings, small, sdist):
    index.add("small-1.0.tar.gz", sdist("1.0")[:-40])
    with pytest.raises(BadInput, match="damaged"):
        take(small, "1.0", settings)
    assert list((settings.cache / "sources").iterdir()) == []
    index.add("small-1.0.tar.gz", sdist("1.0"))
    assert take(small, "1.0", settings).version == "1.0"


def test_an_archive_file(tmp_path, settings, small, sdist):
    path = tmp_path / "downloaded.tar.gz"
    path.write_bytes(sdist("1.0"))
    source = path_source((small,), path, str(path), settings)
    assert (source.version, source.kind) == ("1.0", "sdist")
    assert source.content == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("harm", ["cut", "leads out", "other project", "no cuda"])
def test_a_bad_archive_file(tmp_path, settings, small, sdist, tar, harm):
    content, message = {
        "cut": (sdist("1.0")[:-40], "damaged"),
        "leads out": (tar({"small-1.0/VERSION": b"1", "../../evil": b"2"}), "outside"),
        "other project": (tar({"other-1.0/setup.py": b"1"}), "no source archive of a known framework"),
        "no cuda": (sdist("1.0", cuda=False), "holds no CUDA source"),
    }[harm]
    path = tmp_path / "bad.tar.gz"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        path_source((small,), path, str(path), settings)
    assert not list(tmp_path.glob("**/evil")) and not list(tmp_path.glob("**/.tmp-*"))
