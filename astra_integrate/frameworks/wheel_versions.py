"""Versions that a framework pins, and where the headers lie inside the wheels."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from .base import HeaderNeed

# Library versions of the CUDA 13.0 toolkit; the headers of all 13.x agree in what torch's headers use.
_CUDA_LIBRARIES = (
    ("nvidia-cublas", ">=13.0,<13.3"),
    ("nvidia-cusparse", ">=12.6,<12.7"),
    ("nvidia-cusolver", ">=12.0,<12.1"),
    ("nvidia-curand", ">=10.4,<10.5"),
)


def pinned(project: str, files: Iterable[Path]) -> str | None:
    """The version that the first of ``files`` (requirements, METADATA, pyproject) pins ``project`` to."""
    name = re.sub(r"[-_.]+", "[-_.]", re.escape(project).replace(r"\-", "-"))
    pin = re.compile(
        rf'^\s*(?:Requires-Dist:\s*)?"?{name}(?:\[[\w,]+\])?\s*==\s*([\w.+!]+)', re.MULTILINE | re.IGNORECASE
    )
    for path in files:
        if path.is_file():
            found = pin.search(path.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[1]
    return None


def python_headers() -> tuple[str, ...]:
    """Where Python.h is, if anywhere: an extension is built with the headers of the interpreter that loads it."""
    folder = sysconfig.get_paths()["include"]
    return (folder,) if Path(folder, "Python.h").is_file() else ()


def torch(version: str | None) -> HeaderNeed:
    """torch's C++ headers."""
    return HeaderNeed("torch", version, "torch/include", ("torch/include", "torch/include/torch/csrc/api/include"))


def cutlass(flashinfer: str | None) -> HeaderNeed:
    """CUTLASS's headers as the flashinfer wheel carries them."""
    return HeaderNeed(
        "flashinfer-python",
        flashinfer,
        "flashinfer/data/cutlass",
        ("flashinfer/data/cutlass/include", "flashinfer/data/cutlass/tools/util/include"),
        optional=True,
    )


def flashinfer(version: str | None) -> tuple[HeaderNeed, ...]:
    """flashinfer's own headers and those it shares with TensorRT-LLM."""
    data = "flashinfer/data"
    return (
        HeaderNeed("flashinfer-python", version, f"{data}/include", (f"{data}/include",), optional=True),
        HeaderNeed(
            "flashinfer-python",
            version,
            f"{data}/csrc",
            (f"{data}/csrc", f"{data}/csrc/nv_internal", f"{data}/csrc/nv_internal/include"),
            optional=True,
        ),
    )


def cuda_libraries() -> tuple[HeaderNeed, ...]:
    """Headers of cuBLAS, cuSPARSE, cuSOLVER, cuRAND: torch's CUDA headers include them."""
    folder = "nvidia/cu13/include"
    return tuple(
        HeaderNeed(project, None, folder, (folder,), specifier=specifier, optional=True)
        for project, specifier in _CUDA_LIBRARIES
    )
