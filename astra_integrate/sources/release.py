"""Releases on the package index, and archives of them on disk, as unpacked source trees."""

from __future__ import annotations

import logging
from pathlib import Path

from packaging.version import Version

from ..errors import BadInput, FetchFailed
from ..frameworks.base import Framework
from ..records import Source
from ..settings import Settings
from .archive import unpack
from .cache import hold, locked, place, read_note, write_note
from .content import has_cuda
from .download import download, file_digest
from .index import Kind, find

log = logging.getLogger(__name__)


def release_source(framework: Framework, version: str | None, spec: str, settings: Settings) -> Source:
    """The release ``version`` (None: the newest), fetched and unpacked once.

    An exact version that was taken before needs no network. Of wheels, the same one is taken on
    every machine, since it is only read. Raises as :func:`.index.find` and
    :func:`.archive.unpack` do.
    """
    known = _remembered(framework, version, spec, settings) if version is not None else None
    if known is not None:
        return known
    try:
        artifact = find(framework.project, version or "", framework.artifact, settings, runnable=False)
    except FetchFailed as error:
        if version is None and (newest := _newest_here(framework, settings)) is not None:
            log.warning("%s; taking the newest release in the cache, %s", error.message, newest)
            return release_source(framework, newest, spec, settings)
        raise
    if version is None and (known := _remembered(framework, str(artifact.version), spec, settings)) is not None:
        return known
    fetched = download(artifact, settings)
    root = _unpacked(framework, str(artifact.version), fetched.path, fetched.sha256, settings)
    note = {"kind": artifact.kind, "sha256": fetched.sha256, "file": artifact.filename}
    write_note(_note_path(framework, str(artifact.version), settings), note)
    return _source(framework, str(artifact.version), spec, artifact.kind, root, fetched.sha256)


def archive_source(frameworks: tuple[Framework, ...], archive: Path, spec: str, settings: Settings) -> Source:
    """A source archive on disk (sdist or wheel of any known framework), unpacked into the cache."""
    digest = file_digest(archive)
    kind: Kind = "wheel" if archive.name.endswith(".whl") else "sdist"
    target = place(settings, "sources") / f"archive-{digest[:16]}"
    with locked(target):
        if not target.is_dir():
            unpack(archive, target, strip=kind == "sdist")
    for framework in frameworks:
        version = framework.detect(target)
        if version is not None:
            _require_cuda(framework, target, archive.name)
            return _source(framework, version, spec, kind, hold(target), digest)
    known = ", ".join(framework.name for framework in frameworks)
    raise BadInput(f"{archive} is no source archive of a known framework", f"Known are: {known}")


def _source(framework: Framework, version: str, spec: str, kind: Kind, root: Path, digest: str) -> Source:
    return Source(framework=framework.name, version=version, spec=spec, kind=kind, root=str(root), content=digest)


def _tree(framework: Framework, version: str, digest: str, settings: Settings) -> Path:
    return place(settings, "sources") / f"{framework.name}-{version}-{digest[:8]}"


def _note_path(framework: Framework, version: str, settings: Settings) -> Path:
    return place(settings, "sources") / f"{framework.name}-{version}-{framework.artifact}.json"


def _remembered(framework: Framework, version: str, spec: str, settings: Settings) -> Source | None:
    """The release as an earlier call left it, if its tree is still there."""
    note = read_note(_note_path(framework, version, settings))
    if note is None or note.get("kind") != framework.artifact or not isinstance(note.get("sha256"), str):
        return None
    root = _tree(framework, version, note["sha256"], settings)
    if not root.is_dir():
        return None
    return _source(framework, version, spec, framework.artifact, hold(root), note["sha256"])


def _newest_here(framework: Framework, settings: Settings) -> str | None:
    """The newest stable release that is unpacked in the cache."""
    found = []
    for path in place(settings, "sources").glob(f"{framework.name}-*-{framework.artifact}.json"):
        text = path.name.removeprefix(f"{framework.name}-").removesuffix(f"-{framework.artifact}.json")
        if _remembered(framework, text, "", settings) is not None:
            found.append(Version(text))
    stable = [version for version in found if not version.is_prerelease]
    return str(max(stable or found)) if found else None


def _unpacked(framework: Framework, version: str, archive: Path, digest: str, settings: Settings) -> Path:
    target = _tree(framework, version, digest, settings)
    with locked(target):
        if not target.is_dir():
            unpack(archive, target, strip=framework.artifact == "sdist")
    _require_cuda(framework, target, f"{framework.name} {version}")
    return hold(target)


def _require_cuda(framework: Framework, root: Path, shown: str) -> None:
    """Raise :class:`BadInput` where the framework's own folders hold no CUDA file."""
    if not any(has_cuda(root / folder) for folder in framework.own_folders(root)):
        raise BadInput(
            f"The {framework.artifact} of {shown} holds no CUDA source",
            f"Take another version or a checkout ({framework.name}@REF)",
        )
