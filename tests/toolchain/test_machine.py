from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.settings import Settings
from astra_integrate.toolchain.discovery import discover
from astra_integrate.toolchain.machine import graphics, machine


def nvidia_smi(folder: Path, script: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_gpus_and_driver_as_nvidia_smi_tells_them(bare: Path) -> None:
    nvidia_smi(bare, "echo 'NVIDIA H200, 580.95.05'; echo 'NVIDIA H200, 580.95.05'")
    assert graphics() == (("NVIDIA H200", "NVIDIA H200"), "580.95.05")
    assert machine(None).gpu == "2 x NVIDIA H200"
    assert machine(None).driver == "580.95.05"


@pytest.mark.parametrize("script", ["echo 'NVIDIA-SMI has failed'; exit 9", "echo 'No devices were found'"])
def test_an_image_with_nvidia_smi_and_no_gpu_has_none(bare: Path, script: str) -> None:
    nvidia_smi(bare, script)
    assert graphics() == ((), None)
    assert machine(None).gpu is None


def test_host_facts_and_the_toolchain_in_use(bare: Path, make_settings: Callable[..., Settings]) -> None:
    here = machine(discover(make_settings()))
    assert here.cuda == "13.0.88"
    assert here.compiler is None
    assert here.python == platform.python_version()
    assert here.cores >= 1
    assert here.memory_bytes > 1 << 28
    assert here.cpu


@pytest.mark.gpu
def test_this_machines_gpu_is_seen() -> None:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no nvidia-smi here")
    assert machine(None).gpu is not None
