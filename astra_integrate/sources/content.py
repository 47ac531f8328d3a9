"""A digest over a source tree's CUDA code, for trees that no archive or commit vouches for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import BadInput
from ..frameworks.base import Framework
from .download import file_digest

_CUDA = (".cu", ".cuh")
_COUNTED = (*_CUDA, ".h", ".hpp", ".hh", ".cpp", ".cc", ".cxx", ".c", ".inl", ".inc", ".cmake")
_BUILD_FILES = ("CMakeLists.txt", "setup.py", "pyproject.toml")
_SKIPPED = {".git", "build", "__pycache__", "node_modules", ".deps"}


def content_digest(framework: Framework, root: Path) -> str:
    """SHA-256 over the names and bytes of the framework's own C++ and CUDA files and its build files.

    Raises :class:`BadInput` where there is no CUDA file among them.
    """
    folders = framework.own_folders(root)
    files = sorted({path for folder in folders for path in _files(root / folder)})
    if not any(path.suffix in _CUDA for path in files):
        looked = ", ".join(folders) or "the whole tree"
        raise BadInput(
            f"{root} holds no CUDA source of {framework.name} (looked in {looked})",
            f"Take a release ({framework.name}==VERSION) or a checkout of its repository",
        )
    digest = hashlib.sha256()
    for path in [*files, *(root / name for name in _BUILD_FILES if (root / name).is_file())]:
        digest.update(f"{path.relative_to(root).as_posix()}\0{file_digest(path)}\n".encode())
    return digest.hexdigest()


def has_cuda(folder: Path) -> bool:
    """True where any CUDA file lies below ``folder``."""
    return any(path.suffix in _CUDA for path in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    """C++ and CUDA files below ``folder``; links to folders are not followed, build outputs are skipped."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            path = Path(parent, name)
            if name.endswith(_COUNTED) and path.is_file():
                yield path
