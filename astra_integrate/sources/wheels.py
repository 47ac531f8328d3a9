"""A small wheel as a folder: found, fetched, checked and unpacked into the cache."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..settings import Settings
from .archive import unpack
from .cache import hold, locked, place
from .download import download
from .index import find, specifier_set


def wheel_folder(project: str, specifier: str, settings: Settings) -> tuple[Path, str]:
    """Folder that a wheel of ``project`` is unpacked to, and its version.

    A version already in the cache that ``specifier`` allows (the newest of them) is taken without
    asking the index. Files in a ``bin`` folder are executable. Raises as :func:`.index.find` and
    :func:`.archive.unpack` do.
    """
    name = canonicalize_name(project)
    folder = place(settings, "toolchain")
    cached = cached_versions(folder, name, specifier_set(specifier))
    if cached:
        return hold(folder / f"{name}-{cached[0]}"), str(cached[0])
    artifact = find(name, specifier, "wheel", settings)
    target = folder / f"{name}-{artifact.version}"
    with locked(target):
        if not target.is_dir():
            unpack(download(artifact, settings).path, target, executable=in_bin_folder)
    return hold(target), str(artifact.version)


def in_bin_folder(name: str) -> bool:
    """True for a file right under a folder called ``bin``."""
    return PurePosixPath(name).parent.name == "bin"


def cached_versions(folder: Path, prefix: str, wanted: SpecifierSet, suffix: str = "") -> list[Version]:
    """Versions V of the folders ``<prefix>-<V><suffix>`` that ``wanted`` allows, newest first."""
    found = []
    for path in folder.iterdir():
        text = path.name.removeprefix(f"{prefix}-")
        if text == path.name or not text.endswith(suffix) or not path.is_dir():
            continue
        try:
            found.append(Version(text[: len(text) - len(suffix)] if suffix else text))
        except InvalidVersion:
            continue
    return sorted(wanted.filter(found), reverse=True)
