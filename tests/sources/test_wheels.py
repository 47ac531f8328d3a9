"""A tool's wheel becomes a folder with programs that run."""

from __future__ import annotations

import subprocess

import pytest

from astra_integrate.errors import BadInput, FetchFailed
from astra_integrate.settings import load
from astra_integrate.sources.wheels import wheel_folder


@pytest.fixture
def tools(index, zipped):
    for version in ("13.0.1", "13.1.0", "14.0.0"):
        content = {"tool/bin/hello": b"#!/bin/sh\necho hello\n", "tool/include/x.h": b"int x;"}
        index.add(f"small_tool-{version}-py3-none-any.whl", zipped(content))
    return index


def test_the_newest_allowed_wheel_is_unpacked_and_runs(tools, settings):
    folder, version = wheel_folder("small-tool", ">=13,<14", settings)
    assert version == "13.1.0"
    assert subprocess.check_output([folder / "tool/bin/hello"], text=True) == "hello\n"
    assert not (folder / "tool/include/x.h").stat().st_mode & 0o111


def test_what_is_in_the_cache_needs_no_network(tools, settings, closed_port):
    folder, _ = wheel_folder("small_tool", "13.0.1", settings)
    alone = load(home=settings.home, index_url=closed_port)
    assert wheel_folder("Small.Tool", ">=13,<14", alone) == (folder, "13.0.1")
    with pytest.raises(FetchFailed):
        wheel_folder("small-tool", ">=14", alone)


def test_a_wheel_that_leads_out_leaves_nothing(index, settings, zipped):
    index.add("small_tool-1.0-py3-none-any.whl", zipped({"../evil": b"x"}))
    for _ in range(2):
        with pytest.raises(BadInput, match="outside"):
            wheel_folder("small-tool", "", settings)
    assert list((settings.cache / "toolchain").iterdir()) == []
