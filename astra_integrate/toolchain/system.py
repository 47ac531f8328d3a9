"""What the machine itself has: a CUDA toolkit, git, and clang's headers beside the installed libclang."""

from __future__ import annotations

import os
import re
import shutil
from importlib import metadata, util
from pathlib import Path

from astra_integrate.errors import BadInput
from astra_integrate.settings import Settings

from .tool import Tool, cuda_version, first_number, output

OLDEST_CUDA = (12, 4)
"""An older toolkit lacks what the frameworks' sources use (C++20 of nvcc, fp8 conversions): wheels are taken."""

GENERIC_LOCATIONS = ("/usr/local/cuda", "/opt/cuda")
WHEELS_ONLY = Path("wheels")
"""The value of the setting ``cuda_home`` that passes the system's toolkit over."""


def find_cuda(settings: Settings) -> tuple[Path | None, str, str]:
    """The system's CUDA toolkit: its folder, nvcc's version, and where the name came from.

    Looks at the setting ``cuda_home``, ``CUDA_HOME``, ``CUDA_PATH``, nvcc on PATH, then the usual
    folders; takes the first that is complete. Without one, the folder is None and the third value
    says what was wrong with those seen. Raises :class:`BadInput` where the setting isn't a toolkit.
    """
    if settings.cuda_home == WHEELS_ONLY:
        return None, "", "the setting cuda_home asks for wheels"
    wrong = []
    for home, origin in _candidates(settings):
        version = cuda_version(home / "bin" / "nvcc")
        fault = _fault(home, version)
        if not fault and version:
            return home, version, origin
        if origin == "setting cuda_home":
            raise BadInput(f"ASTRA_CUDA_HOME is {home}, but {fault}", "Correct it, or set it to 'wheels'")
        if home.is_dir():
            wrong.append(f"{home}: {fault}")
    return None, "", "; ".join(wrong)


def _candidates(settings: Settings) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    if settings.cuda_home:
        return [(settings.cuda_home, "setting cuda_home")]
    found += [
        (Path(os.environ[name]), f"variable {name}") for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)
    ]
    on_path = shutil.which("nvcc")
    if on_path:
        home = _home_of(Path(on_path))
        found += [(home, "system")] if home else []
    for name in GENERIC_LOCATIONS:
        found.append((Path(name), "system"))
        versions = Path(name).parent.glob(Path(name).name + "-*")
        found += [(path, "system") for path in sorted(versions, key=_numbers, reverse=True)]
    return found


def _home_of(nvcc: Path) -> Path | None:
    """The toolkit folder, as nvcc itself tells it: the nvcc on PATH may be a link or a wrapper script."""
    text = output(nvcc, "--dryrun", "-E", "-x", "cu", os.devnull) or ""
    match = re.search(r"^#\$ TOP=(.+)$", text, re.MULTILINE)
    return Path(match.group(1)).resolve() if match else None


def _fault(home: Path, version: str | None) -> str:
    if version is None:
        return "its bin/nvcc doesn't run" if (home / "bin" / "nvcc").exists() else "it has no bin/nvcc"
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_CUDA:
        return f"nvcc {version} is older than {OLDEST_CUDA[0]}.{OLDEST_CUDA[1]}"
    folders = cuda_includes(home)
    for header in ("cuda_runtime.h", "crt/host_config.h", "cub/cub.cuh", "cuda/std/type_traits"):
        if not any((folder / header).is_file() for folder in folders):
            return f"the header {header} is missing"
    return ""


def _numbers(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path.name))


def cuda_includes(home: Path) -> tuple[Path, ...]:
    """The toolkit's include folders, CCCL first (CUDA 13 moved it into a folder of its own)."""
    return tuple(folder for folder in (home / "include" / "cccl", home / "include") if folder.is_dir())


def find_disassemblers(home: Path | None) -> tuple[Path, Path] | None:
    """The system's cuobjdump and nvdisasm, together: the first calls the second for SASS."""
    folders = [home / "bin"] if home else []
    on_path = shutil.which("cuobjdump")
    folders += [Path(on_path).parent] if on_path else []
    for folder in folders:
        pair = (folder / "cuobjdump", folder / "nvdisasm")
        if all(cuda_version(program) for program in pair):
            return pair
    return None


def find_git() -> Tool:
    """The git program."""
    found = shutil.which("git")
    if found is None:
        return Tool("git", None, mend="Install git: `apt-get install git` or `dnf install git`")
    return Tool("git", Path(found), first_number(output(Path(found), "--version") or ""), "system")


def find_clang() -> Tool:
    """The resource folder of the installed libclang: the headers that belong to exactly that parser."""
    spec = util.find_spec("clang")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        resource = Path(folder) / "native" / "resource"
        if (resource / "include" / "cuda_wrappers").is_dir():
            version = metadata.version("libclang-ng")
            return Tool("clang", resource, version, f"wheel libclang-ng {version}")
    return Tool(
        "clang",
        None,
        # The package named libclang owns the same folder and has no headers; installed beside, it wins or breaks ours.
        mend="Run `pip uninstall -y libclang clang` and then `pip install --force-reinstall 'libclang-ng>=22,<23'`",
    )
