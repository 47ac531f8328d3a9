"""A download is whole and checked or not there at all."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from astra_integrate.errors import FetchFailed
from astra_integrate.settings import Settings, load
from astra_integrate.sources import download as module
from astra_integrate.sources.download import download
from astra_integrate.sources.index import find

NAME = "small-1.0.tar.gz"


def left(settings: Settings) -> list[str]:
    return sorted(path.name for path in (settings.cache / "downloads").iterdir())


def fetch(settings: Settings) -> Path:
    return download(find("small", "1.0", "sdist", settings), settings).path


def fetch_in_process(home: str, url: str) -> None:
    fetch(load(home=home, index_url=url))


def test_fetched_once_and_checked(index, settings):
    index.add(NAME, b"content" * 1000)
    path = fetch(settings)
    assert path.read_bytes() == b"content" * 1000 and path.parent == (settings.cache / "downloads").resolve()
    fetch(settings)
    assert len(index.sent(NAME)) == 1


def test_bytes_that_do_not_match_the_checksum_are_removed(index, settings):
    index.add(NAME, b"good")
    index.files[NAME] = b"evil"
    with pytest.raises(FetchFailed, match=r"small-1\.0\.tar\.gz arrived damaged"):
        fetch(settings)
    assert left(settings) == []
    index.files[NAME] = b"good"
    assert fetch(settings).read_bytes() == b"good"


def test_a_file_that_rotted_in_the_cache_is_fetched_again(index, settings):
    index.add(NAME, b"good")
    fetch(settings).write_bytes(b"rotten")
    assert fetch(settings).read_bytes() == b"good"


def test_a_body_that_ends_early_is_tried_again_then_refused(index, settings):
    index.add(NAME, b"content" * 1000)
    index.cut = 10
    with pytest.raises(FetchFailed, match="can't be fetched"):
        fetch(settings)
    assert len(index.sent(NAME)) > 1 and left(settings) == []
    index.cut = 0
    assert fetch(settings).stat().st_size == 7000


def test_a_file_that_is_gone(index, settings):
    index.add(NAME, b"x")
    artifact = find("small", "1.0", "sdist", settings)
    del index.files[NAME]
    with pytest.raises(FetchFailed, match="404"):
        download(artifact, settings)
    assert left(settings) == []


def test_no_space_is_known_before_the_first_byte(index, settings):
    index.add(NAME, b"x")
    index.sizes[NAME] = 1 << 60
    with pytest.raises(FetchFailed, match=r"No disk space for small-1.0.tar.gz.*ASTRA_HOME"):
        fetch(settings)
    assert index.sent(NAME) == [] and left(settings) == []


def test_a_disk_that_fills_up_on_the_way_leaves_nothing(index, settings):
    index.add(NAME, os.urandom(1 << 20))
    code = (
        "import sys; from astra_integrate.settings import load\n"
        "from astra_integrate.sources.download import download\n"
        "from astra_integrate.sources.index import find\n"
        "from astra_integrate.errors import FetchFailed\n"
        "settings = load(home=sys.argv[1], index_url=sys.argv[2])\n"
        "try: download(find('small', '1.0', 'sdist', settings), settings)\n"
        "except FetchFailed as error: print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, settings.home, index.url],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18)),
        env={**os.environ, "PYTHONPATH": str(Path(module.__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.startswith("No disk space left in") and "ASTRA_HOME" in ran.stdout, ran.stderr
    assert left(settings) == []
    assert fetch(settings).stat().st_size == 1 << 20


def test_two_processes_share_one_download(index, settings):
    index.add(NAME, os.urandom(1 << 20))
    index.slow = 1.0
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=fetch_in_process, args=(str(settings.home), index.url)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(index.sent(NAME)) == 1 and left(settings) == [NAME]


def test_what_a_killed_process_left_is_cleared_away(index, settings):
    index.add(NAME, b"good")
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    (settings.cache / "downloads").mkdir(parents=True)
    (settings.cache / f"downloads/.tmp-{NAME}-{dead.stdout.strip()}-0123abcd").write_bytes(b"half")
    fetch(settings)
    assert left(settings) == [NAME]


def test_a_folder_that_may_not_be_written(index, tmp_path):
    index.add(NAME, b"x")
    (tmp_path / "home").write_text("a file in the way")
    with pytest.raises(Exception, match="ASTRA_HOME") as caught:
        fetch(load(home=tmp_path / "home", index_url=index.url))
    assert caught.type.__name__ in ("BadInput", "FetchFailed")
