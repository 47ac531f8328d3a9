"""Header folders out of the wheels that a framework pins, without installing them."""

from __future__ import annotations

import importlib.metadata
import logging
from pathlib import Path
from zipfile import BadZipFile

import requests
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import BadInput, FetchFailed
from ..frameworks.base import Framework, HeaderNeed
from ..progress import step
from ..records import digest_of
from ..settings import Settings
from .archive import unpack
from .cache import hold, locked, place, remove, temporary, write_note
from .download import download
from .index import Artifact, find, specifier_set
from .pip_configuration import configuration
from .ranges import NoRanges, fetch_members
from .transport import reason, session
from .wheels import cached_versions

log = logging.getLogger(__name__)


def header_folder(need: HeaderNeed, settings: Settings) -> Path:
    """A folder laid out as the wheel of ``need.project``, which holds at least ``need.prefix``.

    In order: this interpreter's own installation if its version is exactly the pinned one, the
    cache (newest version that the need allows), the wheel on the index: by range reads where the
    server allows, else as a whole. Raises as :func:`.index.find` does, and :class:`BadInput` where
    the wheel has nothing under the prefix.
    """
    prefix = need.prefix.strip("/") + "/"
    name = canonicalize_name(need.project)
    if need.version is not None and (installed := _installed(name, need.version, prefix)) is not None:
        return installed
    folder = place(settings, "headers")
    wanted = f"=={need.version}" if need.version is not None else need.specifier
    suffix = f"-{digest_of(prefix)[:8]}"
    if cached := cached_versions(folder, name, specifier_set(wanted), suffix):
        return hold(folder / f"{name}-{cached[0]}{suffix}")
    artifact = find(name, wanted, "wheel", settings, runnable=False)
    target = folder / f"{name}-{artifact.version}{suffix}"
    with locked(target):
        if not target.is_dir():
            _take(artifact, prefix, target, settings)
    return hold(target)


def header_includes(framework: Framework, root: Path, settings: Settings) -> tuple[Path, ...]:
    """Absolute include folders of all that ``framework`` needs from outside, in its order.

    Optional needs that can't be had are skipped and said in the log; others raise.
    """
    found: list[Path] = []
    for need in framework.header_needs(root):
        try:
            folder = header_folder(need, settings)
        except (FetchFailed, BadInput) as error:
            if not need.optional:
                raise
            log.warning("headers of %s are left out: %s", need.project, error)
            continue
        found += [folder / include for include in need.include]
    return tuple(dict.fromkeys(found))


def _installed(name: str, version: str, prefix: str) -> Path | None:
    """Where this interpreter has exactly ``version`` of ``name`` with its headers; nothing is imported."""
    try:
        there = importlib.metadata.distribution(name)
        same = Version(there.version) == Version(version)
    except (importlib.metadata.PackageNotFoundError, InvalidVersion):
        return None
    root = Path(str(there.locate_file(""))).resolve()
    return root if same and (root / prefix).is_dir() else None


def _take(artifact: Artifact, prefix: str, target: Path, settings: Settings) -> None:
    """Bring ``prefix`` of the wheel to ``target``, with a list of the files and its digest beside it."""
    part = temporary(target)
    copy = part / artifact.filename
    try:
        part.mkdir()
        try:
            _fetch_part(artifact, prefix, copy, settings)
            archive = copy
        except NoRanges as error:
            with step(f"The index server gives no parts of {artifact.filename} ({error}): fetching the whole wheel"):
                archive = download(artifact, settings).path
        unpack(archive, target, keep=lambda name: name.startswith(prefix))
    finally:
        remove(part)
    files = sorted(path.relative_to(target).as_posix() for path in (target / prefix).rglob("*") if path.is_file())
    if not files:
        remove(target)
        raise BadInput(
            f"The wheel {artifact.filename} has no folder {prefix!r}", "Report it: the framework's data is wrong"
        )
    note = {"wheel": artifact.filename, "prefix": prefix, "files": files, "digest": _tree_digest(target, files)}
    write_note(target.with_name(f"{target.name}.json"), note)


def _fetch_part(artifact: Artifact, prefix: str, copy: Path, settings: Settings) -> None:
    if settings.offline or not artifact.url.startswith(("http:", "https:")):
        raise NoRanges("it is a local file")
    setup = configuration(settings)
    with session(setup) as client, step(f"Fetching headers of {artifact.project} {artifact.version}") as task:
        try:
            fetch_members(artifact.url, client, setup.seconds, copy, lambda name: name.startswith(prefix), task)
        except requests.RequestException as error:
            raise FetchFailed(
                f"Headers of {artifact.filename} can't be fetched: {reason(error)}",
                "Go online or set ASTRA_INDEX_URL to an index that answers",
            ) from error
        except BadZipFile as error:
            raise FetchFailed(
                f"{artifact.filename} on the index is no readable wheel ({error})",
                "Set ASTRA_INDEX_URL to an index that has it whole",
            ) from error


def _tree_digest(root: Path, files: list[str]) -> str:
    """SHA-256 over names and sizes; the bytes were checked by the wheel's own checksums while unpacking."""
    return digest_of("\0".join(f"{name}:{(root / name).stat().st_size}" for name in files))
