"""Fixtures over real framework source; each skips, with its reason, where the index can't be reached."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from astra_integrate.errors import FetchFailed, MissingTool
from astra_integrate.records import Source
from astra_integrate.settings import Settings, load


@pytest.fixture(scope="session")
def settings_(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the test session: runs and patches are the session's own, the cache is shared between sessions."""
    home = tmp_path_factory.mktemp("astra-home")
    shared = Path(os.environ.get("ASTRA_TEST_CACHE", load().cache))
    shared.mkdir(parents=True, exist_ok=True)
    (home / "cache").symlink_to(shared, target_is_directory=True)
    return load(home=home)


def _source(spec: str, settings: Settings) -> Source:
    from astra_integrate.sources import resolve

    try:
        return resolve(spec, settings)
    except FetchFailed as error:
        pytest.skip(f"{spec} could not be fetched: {error}")


@pytest.fixture(scope="session")
def vllm_0_12(settings_: Settings) -> Source:
    """The vLLM release whose activation kernels are still scalar."""
    return _source("vllm==0.12.0", settings_)


@pytest.fixture(scope="session")
def vllm_0_33(settings_: Settings) -> Source:
    """The newest vLLM release that is supported."""
    return _source("vllm==0.33.0", settings_)


@pytest.fixture(scope="session")
def sglang_0_5_23(settings_: Settings) -> Source:
    """The newest SGLang release that is supported (its wheel holds the JIT sources)."""
    return _source("sglang==0.5.23", settings_)


@pytest.fixture(scope="session")
def toolchain(settings_: Settings):  # type: ignore[no-untyped-def]
    """Compilers and disassemblers, fetched where the system has none."""
    from astra_integrate.toolchain.discovery import discover

    try:
        found = discover(settings_)
    except (MissingTool, FetchFailed) as error:
        pytest.skip(f"no CUDA toolchain: {error}")
    if found.nvcc is None or found.cuobjdump is None:
        pytest.skip("no CUDA toolchain: nvcc or cuobjdump is missing")
    return found
