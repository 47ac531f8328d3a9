"""The machine that a figure was taken on."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from pathlib import Path

from astra_integrate.records import Machine

from .discovery import Toolchain
from .tool import output


def machine(toolchain: Toolchain | None) -> Machine:
    """This host as it is now; ``gpu`` and ``driver`` come from nvidia-smi and are None without it.

    ``cuda`` is the version of the nvcc in ``toolchain``, ``compiler`` its C++ compiler with version.
    """
    gpus, driver = graphics()
    compiler = toolchain.tool("c++") if toolchain else None
    return Machine(
        host=platform.node(),
        cpu=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpu=", ".join(name if count == 1 else f"{count} x {name}" for name, count in Counter(gpus).items()) or None,
        driver=driver,
        cuda=(toolchain.tool("nvcc").version or None) if toolchain else None,
        compiler=f"{compiler.path.name} {compiler.version}" if compiler and compiler.path else None,
        python=platform.python_version(),
    )


def graphics() -> tuple[tuple[str, ...], str | None]:
    """The names of the NVIDIA GPUs in nvidia-smi's order, and the driver's version; nothing without them."""
    program = shutil.which("nvidia-smi")
    # nvidia-smi is in many images that have no GPU: it fails there, and that means none.
    text = output(Path(program), "--query-gpu=name,driver_version", "--format=csv,noheader") if program else None
    rows = [line.rsplit(", ", 1) for line in (text or "").splitlines()]
    rows = [row for row in rows if len(row) == 2]
    return tuple(name for name, _ in rows), rows[0][1] if rows else None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
