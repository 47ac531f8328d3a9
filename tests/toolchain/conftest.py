"""A local package index of tiny CUDA tool wheels, and a machine that shows no tools of its own."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.settings import Settings, load
from astra_integrate.toolchain import system

HEADERS = ("cuda_runtime.h", "crt/host_config.h", "cccl/cub/cub.cuh", "cccl/cuda/std/type_traits")

PARTS = {
    "nvidia-cuda-nvcc": (
        "13.0.88",
        {"bin/nvcc": "program 13.0.88", "bin/ptxas": "program 13.0.88", "bin/nvcc.profile": "TOP"},
    ),
    "nvidia-nvvm": ("13.0.88", {"nvvm/bin/cicc": "program 13.0.88", "nvvm/libdevice/libdevice.10.bc": "BC"}),
    "nvidia-cuda-crt": ("13.0.88", {"include/crt/host_config.h": "//"}),
    "nvidia-cuda-runtime": ("13.0.96", {"include/cuda_runtime.h": "//"}),
    "nvidia-cuda-cccl": ("13.0.85", {"include/cccl/cub/cub.cuh": "//", "include/cccl/cuda/std/type_traits": "//"}),
    "nvidia-cuda-cuobjdump": ("13.5.37", {"bin/cuobjdump": "program 13.5.37"}),
    "nvidia-cuda-nvdisasm": ("13.5.37", {"bin/nvdisasm": "program 13.5.37"}),
}


def program(path: Path, version: str) -> Path:
    """A program that answers ``--version`` as NVIDIA's tools do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version[:4]}, V{version}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def toolkit(home: Path, version: str, *, disassemblers: bool = False, without: str = "") -> Path:
    """A system toolkit under ``home``."""
    program(home / "bin" / "nvcc", version)
    for name in ("cuobjdump", "nvdisasm") if disassemblers else ():
        program(home / "bin" / name, version)
    for header in HEADERS:
        if header != without:
            (home / "include" / header).parent.mkdir(parents=True, exist_ok=True)
            (home / "include" / header).write_text("//", encoding="utf-8")
    return home


def write_wheel(folder: Path, project: str, version: str, files: dict[str, str]) -> Path:
    name = project.replace("-", "_")
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    members = {
        f"nvidia/cu13/{member}": f"#!/bin/sh\necho 'release {text[8:12]}, V{text[8:]}'\n"
        if text.startswith("program")
        else text
        for member, text in files.items()
    }
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
    members[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(
        f"{member},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}\n"
        for member, text in members.items()
    )
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)  # mode 0600: no executable bit
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder that is a package index (PEP 503) with the seven tool wheels."""
    simple = tmp_path / "simple"
    for project, (version, files) in PARTS.items():
        folder = simple / project
        folder.mkdir(parents=True)
        wheel = write_wheel(folder, project, version, files)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>', encoding="utf-8")
    return simple


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any tool: an empty PATH (the folder returned), no CUDA_HOME, nothing in the usual places."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for name in ("CUDA_HOME", "CUDA_PATH", "CXX", "ASTRA_CXX", "ASTRA_CUDA_HOME", "ASTRA_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(system, "GENERIC_LOCATIONS", (str(tmp_path / "local" / "cuda"),))
    return folder


@pytest.fixture
def make_settings(tmp_path: Path, index: Path) -> Callable[..., Settings]:
    """Settings whose cache is empty and whose index is the local one."""

    def make(**overrides: object) -> Settings:
        return load(**{"home": tmp_path / "home", "index_url": index.as_uri(), **overrides})

    return make
