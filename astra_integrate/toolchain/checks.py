"""What `astra doctor` looks at: everything a run uses, whether it is there, and the one line that mends it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from astra_integrate.errors import AstraError
from astra_integrate.settings import Settings
from astra_integrate.sources.disk import size_text
from astra_integrate.sources.index import find
from astra_integrate.sources.pip_configuration import configuration, without_secrets

from .discovery import Toolchain
from .machine import graphics

PYTHON = ((3, 11), (3, 13))
NEEDED_BYTES = 3_000_000_000
"""What a first run downloads and unpacks: toolkit, one framework's source, torch's headers."""

MODELS_WITHOUT_KEY = ("rules", "scripted", "handoff")


@dataclass(frozen=True)
class Check:
    """One line of the doctor's table.

    ``state``: ok; missing (nothing runs without it); limited (the chain runs, but does less).
    ``mend`` is empty when ``state`` is ok.
    """

    name: str
    state: Literal["ok", "missing", "limited"]
    version: str = ""
    origin: str = ""
    path: str = ""
    mend: str = ""


def checks(settings: Settings, toolchain: Toolchain, *, fetch: bool) -> tuple[Check, ...]:
    """Every check, in the order of the table. ``fetch`` is what ``toolchain`` was discovered with."""
    index = package_index(settings)
    fetchable = index.state == "ok" and not fetch and not settings.offline
    return (
        python(),
        tool(toolchain, "git"),
        tool(toolchain, "c++"),
        parser(toolchain),
        *(tool(toolchain, name, fetchable=fetchable) for name in ("nvcc", "cuobjdump", "nvdisasm")),
        compiling(settings, toolchain),
        index,
        home(settings),
        gpu(),
        model(settings),
    )


def python() -> Check:
    """The interpreter that runs astra."""
    fits = PYTHON[0] <= sys.version_info[:2] <= PYTHON[1]
    mend = "" if fits else "Install astra-integrate with Python 3.11, 3.12 or 3.13"
    return Check("python", "ok" if fits else "missing", platform.python_version(), "system", sys.executable, mend)


def tool(toolchain: Toolchain, name: str, *, fetchable: bool = False) -> Check:
    """A part of the toolchain; with ``fetchable`` a missing one will come with the first run that needs it."""
    found = toolchain.tool(name)
    if found.path is None and fetchable:
        return Check(name, "ok", origin="package index, with the first run that needs it")
    state: Literal["ok", "missing"] = "ok" if found.path else "missing"
    return Check(name, state, found.version, found.origin, str(found.path or ""), found.mend)


def parser(toolchain: Toolchain) -> Check:
    """libclang: its headers are there and the library loads."""
    found = tool(toolchain, "clang")
    if found.state != "ok":
        return found
    from clang import cindex

    try:
        cindex.Index.create()
    except cindex.LibclangError as error:
        mend = f"libclang doesn't load ({error}): run `pip install --force-reinstall 'libclang-ng>=22,<23'`"
        return replace(found, state="missing", mend=mend)
    return found


def compiling(settings: Settings, toolchain: Toolchain) -> Check:
    """A kernel goes through nvcc with this host compiler: one that is too new for it is refused there."""
    name = f"kernel for {settings.arch}"
    if toolchain.nvcc is None or toolchain.cxx is None:
        return Check(name, "limited", mend="Compile test not run: nvcc or the C++ compiler is missing (see above)")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cu"
        source.write_text("__global__ void kernel(float* x) { x[threadIdx.x] *= 2.0f; }\n", encoding="utf-8")
        command = [str(toolchain.nvcc), *toolchain.ccbin, "-std=c++20", "-cubin", f"-arch={settings.arch}"]
        try:
            done = subprocess.run(
                [*command, str(source), "-o", f"{source}bin"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=settings.compile_seconds,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Check(
                name, "missing", mend=f"nvcc could not be run ({error}): set ASTRA_CUDA_HOME to another toolkit"
            )
    if done.returncode == 0:
        return Check(name, "ok", origin=f"nvcc with {toolchain.cxx.name}, compiled")
    return Check(
        name, "missing", mend=f"nvcc refuses: {_first_error(done.stderr)}; set ASTRA_ARCH or ASTRA_CXX to one it takes"
    )


def package_index(settings: Settings) -> Check:
    """The package index as pip is configured; asked for one small project that astra itself needs."""
    if settings.offline:
        return Check(
            "package index", "limited", mend="Unset ASTRA_OFFLINE to fetch sources; until then the cache serves"
        )
    places = ", ".join(without_secrets(url) for url in configuration(settings).indexes)
    origin = "setting index_url" if settings.index_url else "pip's configuration"
    try:
        find("pypi-simple", "", "wheel", settings)
    except AstraError as error:
        return Check("package index", "limited", origin=origin, path=places, mend=str(error))
    return Check("package index", "ok", origin=origin, path=places)


def home(settings: Settings) -> Check:
    """The folder of runs and cache: writable, and with room for a first run."""
    origin = "setting home" if "home" in settings.model_fields_set else "default"
    existing = next(path for path in (settings.home, *settings.home.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK) or not existing.is_dir():
        mend = f"{existing} can't be written: set ASTRA_HOME to a folder that you may write"
        return Check("ASTRA_HOME", "missing", "", origin, str(settings.home), mend)
    free = shutil.disk_usage(existing).free
    version = f"{size_text(free)} free"
    if free < NEEDED_BYTES:
        mend = f"A first run needs {size_text(NEEDED_BYTES)}: free some space or set ASTRA_HOME to a larger disk"
        return Check("ASTRA_HOME", "limited", version, origin, str(settings.home), mend)
    return Check("ASTRA_HOME", "ok", version, origin, str(settings.home))


def gpu() -> Check:
    """NVIDIA GPUs; without one candidates are checked under emulation and nothing is timed."""
    names, driver = graphics()
    if names:
        return Check("GPU", "ok", f"driver {driver}", f"{len(names)} x {names[0]}" if len(names) > 1 else names[0])
    return Check("GPU", "limited", mend="To time kernels, run on a machine with an NVIDIA GPU and driver (nvidia-smi)")


def model(settings: Settings) -> Check:
    """The model that writes candidates, and whether its key is set (the key itself is never shown)."""
    where = without_secrets(settings.base_url) if settings.base_url else ""
    if settings.api_key is not None:
        return Check("model", "ok", settings.model, "API key is set", where)
    if settings.model in MODELS_WITHOUT_KEY:
        mend = f"Without an API key only built-in models run (now: {settings.model}): set ASTRA_API_KEY and ASTRA_MODEL"
        return Check("model", "limited", settings.model, "no API key", where, mend)
    if settings.base_url:
        # A server of one's own often takes no key.
        return Check(
            "model", "limited", settings.model, "no API key", where, "Set ASTRA_API_KEY if the server wants one"
        )
    return Check("model", "missing", settings.model, "no API key", where, "Set ASTRA_API_KEY, or ASTRA_MODEL=rules")


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if re.search(r"error|fatal|unsupported", line)]
    return (lines or text.strip().splitlines() or ["no message"])[0][:300]
