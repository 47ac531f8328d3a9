"""CUDA's compiler and disassemblers out of PyPI wheels, merged into one folder as nvcc expects its parts."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from astra_integrate.errors import MissingTool
from astra_integrate.progress import step
from astra_integrate.records import digest_of
from astra_integrate.settings import Settings
from astra_integrate.sources.cache import hold, locked, place, read_note, remove, staged, write_note
from astra_integrate.sources.wheels import wheel_folder

COMPILER = (
    ("nvidia-cuda-nvcc", ">=13.0.88,<13.1"),
    ("nvidia-nvvm", ">=13.0.88,<13.1"),
    ("nvidia-cuda-crt", ">=13.0.88,<13.1"),
    ("nvidia-cuda-runtime", ">=13.0.88,<13.1"),
    ("nvidia-cuda-cccl", ">=13.0.85,<13.1"),
)
"""One minor release for all five: cicc, ptxas and the headers have to match nvcc. 13.0 is the
CUDA that the supported frameworks' own wheels are built with, and clang 22 parses its headers."""

DISASSEMBLERS = (("nvidia-cuda-cuobjdump", ">=13.2,<14"), ("nvidia-cuda-nvdisasm", ">=13.2,<14"))
"""The index has none before 13.2; a newer disassembler reads the cubins of an older compiler."""

_VERSIONS = "astra-wheels.json"
_PROGRAM_FOLDERS = ("bin", "nvvm/bin")


@dataclass(frozen=True)
class Merged:
    """A folder with ``bin``, ``include``, ``nvvm`` …, and the version of each wheel in it."""

    folder: Path
    versions: dict[str, str]


def merged(parts: Sequence[tuple[str, str]], settings: Settings, *, fetch: bool) -> Merged | None:
    """The merged folder of the wheels ``parts`` (project, version range), made where it isn't there yet.

    It is named by what was asked for, so that a warm start asks no index. Without ``fetch`` None
    is returned where it isn't there. Raises :class:`MissingTool` where a wheel holds no toolkit parts,
    and as :func:`wheel_folder` does where the index gives none.
    """
    wanted = digest_of(json.dumps([platform.system(), platform.machine(), *parts]))[:16]
    folder = place(settings, "toolchain") / wanted
    found = _read(folder)
    if found is None and fetch:
        with locked(folder):
            found = _read(folder) or _make(folder, parts, settings)
    return found


def _read(folder: Path) -> Merged | None:
    versions = read_note(folder / _VERSIONS)
    return Merged(hold(folder), {project: str(version) for project, version in versions.items()}) if versions else None


def _make(folder: Path, parts: Sequence[tuple[str, str]], settings: Settings) -> Merged:
    versions: dict[str, str] = {}
    # A folder without its note of versions was damaged by hand: it goes, or the new one couldn't take its place.
    remove(folder)
    with step("CUDA tools from the package index", total=len(parts)) as task, staged(folder) as making:
        for project, specifier in parts:
            task.say(f"CUDA tools from the package index: {project}")
            root, versions[project] = wheel_folder(project, specifier, settings)
            _merge(root, making, project)
            task.advance()
        _make_executable(making)
        write_note(making / _VERSIONS, versions)
    return Merged(hold(folder), versions)


def _merge(root: Path, target: Path, project: str) -> None:
    # CUDA 13 wheels share nvidia/cu13, those of CUDA 12 have one folder each (nvidia/cuda_nvcc): both fall together.
    toolkits = [path for path in sorted((root / "nvidia").glob("*")) if path.is_dir()]
    if not toolkits:
        raise MissingTool(f"The wheel of {project} holds no folder nvidia/*", "Install a CUDA toolkit instead")
    for toolkit in toolkits:
        shutil.copytree(toolkit, target, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    # A symbolic link would lead nvcc back to the one wheel it lies in, away from its parts; a hard link doesn't.
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _make_executable(toolkit: Path) -> None:
    # Zip members carry no mode when unpacked by zipfile; programs are what has no suffix in the program folders.
    for name in _PROGRAM_FOLDERS:
        for path in (toolkit / name).glob("*"):
            if path.is_file() and not path.suffix:
                path.chmod(0o755)
