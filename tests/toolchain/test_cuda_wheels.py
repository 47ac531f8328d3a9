from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.errors import AstraError
from astra_integrate.settings import Settings
from astra_integrate.toolchain.cuda_wheels import COMPILER, DISASSEMBLERS, merged

Make = Callable[..., Settings]


def test_parts_of_five_wheels_lie_together_and_programs_run(make_settings: Make) -> None:
    found = merged(COMPILER, make_settings(), fetch=True)
    assert found is not None
    assert found.versions == {
        "nvidia-cuda-nvcc": "13.0.88",
        "nvidia-nvvm": "13.0.88",
        "nvidia-cuda-crt": "13.0.88",
        "nvidia-cuda-runtime": "13.0.96",
        "nvidia-cuda-cccl": "13.0.85",
    }
    for name in ("bin/nvcc", "bin/ptxas", "nvvm/bin/cicc"):
        # A link would lead nvcc out of the folder that holds its parts.
        assert os.access(found.folder / name, os.X_OK)
        assert not (found.folder / name).is_symlink()
    for name in ("bin/nvcc.profile", "include/crt/host_config.h", "include/cuda_runtime.h", "include/cccl/cub/cub.cuh"):
        assert (found.folder / name).is_file()


def test_a_second_start_asks_no_index(make_settings: Make, index: Path) -> None:
    settings = make_settings()
    first = merged(COMPILER, settings, fetch=True)
    shutil.rmtree(index)
    assert merged(COMPILER, settings, fetch=True) == first
    assert merged(COMPILER, settings, fetch=False) == first


def test_without_fetch_nothing_is_fetched(make_settings: Make) -> None:
    settings = make_settings()
    assert merged(DISASSEMBLERS, settings, fetch=False) is None
    assert not list(settings.cache.rglob("*cuobjdump*"))


def test_a_wheel_that_is_not_there_leaves_nothing_that_looks_complete(make_settings: Make, index: Path) -> None:
    settings = make_settings()
    kept = index.parent / "kept"
    (index / "nvidia-nvvm").rename(kept)
    with pytest.raises(AstraError, match="nvidia-nvvm"):
        merged(COMPILER, settings, fetch=True)
    assert merged(COMPILER, settings, fetch=False) is None


def test_a_folder_damaged_by_hand_is_made_anew(make_settings: Make) -> None:
    settings = make_settings()
    first = merged(DISASSEMBLERS, settings, fetch=True)
    assert first is not None
    (first.folder / "astra-wheels.json").unlink()
    (first.folder / "bin" / "cuobjdump").unlink()
    again = merged(DISASSEMBLERS, settings, fetch=True)
    assert again == first
    assert (first.folder / "bin" / "cuobjdump").is_file()
