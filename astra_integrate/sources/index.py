"""Find a project's file on the package index: newest or exact, sdist or wheel that fits."""

from __future__ import annotations

import difflib
import logging
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import requests
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, sys_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version
from pypi_simple import DistributionPackage, NoSuchProjectError, PyPISimple, UnsupportedContentTypeError

from ..errors import BadInput, FetchFailed
from ..progress import step
from ..settings import Settings
from .cache import place
from .pip_configuration import Configuration, configuration, without_secrets
from .transport import CONNECT_SECONDS, patiently, reason, session

log = logging.getLogger(__name__)
Kind = Literal["sdist", "wheel"]
_HEADER_PYTHON = "cp311"
_SHOWN = 5


@dataclass(frozen=True)
class Artifact:
    """One file of a project: where it is, and its checksum and size (bytes) where the index tells them."""

    project: str
    version: Version
    kind: Kind
    filename: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: bool = False


def specifier_set(specifier: str) -> SpecifierSet:
    """``""``, ``>=13,<14`` or a bare version (exact) as a specifier set; raises :class:`BadInput`."""
    text = specifier.strip()
    if text[:1].isalnum():
        text = f"=={text}"
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise BadInput(f"{specifier!r} is not a version or version range", "Write for example 0.12.0") from error


def find(project: str, specifier: str, kind: Kind, settings: Settings, *, runnable: bool = True) -> Artifact:
    """The newest file of ``kind`` that ``specifier`` allows; stable versions before pre-releases.

    Wheels: with ``runnable`` only those that this interpreter could install; without, any for this
    processor, those for CPython 3.11 first (so that everybody takes the same headers). The first
    index that has a fit wins, in pip's order. Offline, a file put into the cache's downloads serves.
    Raises :class:`BadInput` for an unknown project or version and ``FetchFailed`` when no index answers.
    """
    wanted = specifier_set(specifier)
    if settings.offline:
        return _from_downloads(project, wanted, kind, settings, runnable, "ASTRA_OFFLINE is set")
    setup = configuration(settings)
    if not setup.indexes:
        return _from_downloads(project, wanted, kind, settings, runnable, "pip is configured with no-index")
    seen: list[Artifact] = []
    failures: list[str] = []
    with step(f"Looking up {project} on the package index"):
        for number, url in enumerate(setup.indexes):
            try:
                listed = _project_files(url, canonicalize_name(project), setup)
            except FetchFailed as error:
                (failures.append if number == 0 or not url.startswith("file:") else log.debug)(error.message)
                continue
            seen.extend(listed)
            if fits := _fits(listed, wanted, kind, runnable):
                return fits[0]
    if failures and not seen:
        return _from_downloads(project, wanted, kind, settings, runnable, failures[0])
    raise _not_there(project, wanted, kind, seen)


def _project_files(index: str, project: str, setup: Configuration) -> tuple[Artifact, ...]:
    """Every sdist and wheel of ``project`` on one index; none where it doesn't know the project."""
    with PyPISimple(index, session=session(setup)) as client:
        try:
            page = patiently(lambda: client.get_project_page(project, timeout=(CONNECT_SECONDS, setup.seconds)))
        except NoSuchProjectError:
            return ()
        except (requests.RequestException, UnsupportedContentTypeError, ValueError) as error:
            raise FetchFailed(
                f"The package index {without_secrets(index)} can't be reached for {project}: {reason(error)}",
                "Go online or set ASTRA_INDEX_URL to an index that answers",
            ) from error
    return tuple(artifact for package in page.packages if (artifact := _artifact(project, package)) is not None)


def _artifact(project: str, package: DistributionPackage) -> Artifact | None:
    read = _read_filename(package.filename)
    if read is None or read[0] != project:
        return None
    return Artifact(
        project=project,
        version=read[1],
        kind=read[2],
        filename=package.filename,
        url=package.url,
        sha256=package.digests.get("sha256"),
        size=package.size,
        yanked=package.is_yanked,
    )


def _read_filename(filename: str) -> tuple[str, Version, Kind] | None:
    """Project, version and kind as a file's name tells them; None for anything else."""
    if "/" in filename or filename.startswith("."):
        return None
    try:
        if filename.endswith(".whl"):
            name, version, _, _ = parse_wheel_filename(filename)
            return name, version, "wheel"
        if filename.endswith((".tar.gz", ".zip")):
            name, version = parse_sdist_filename(filename)
            return name, version, "sdist"
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
    return None


def _fits(listed: Iterable[Artifact], wanted: SpecifierSet, kind: Kind, runnable: bool) -> list[Artifact]:
    """Files that can be taken, the best first."""
    exact = any(part.operator in ("==", "===") and "*" not in part.version for part in wanted)
    ranked: list[tuple[int, Artifact]] = []
    for artifact in listed:
        rank = _rank(artifact.filename, runnable) if artifact.kind == kind == "wheel" else 0
        if artifact.kind == kind and rank is not None and (exact or not artifact.yanked):
            ranked.append((rank, artifact))
    allowed = set(wanted.filter(artifact.version for _, artifact in ranked))
    ranked = [item for item in ranked if item[1].version in allowed]
    ranked.sort(key=lambda item: (item[0], item[1].filename))
    ranked.sort(key=lambda item: item[1].version, reverse=True)
    return [artifact for _, artifact in ranked]


@cache
def _own_tags() -> dict[Tag, int]:
    return {tag: number for number, tag in enumerate(sys_tags())}


def _rank(filename: str, runnable: bool) -> int | None:
    """How well a wheel fits (smaller is better); None where it doesn't."""
    tags = parse_wheel_filename(filename)[3]
    if runnable:
        own = _own_tags()
        return min((own[tag] for tag in tags if tag in own), default=None)
    ranks = []
    for tag in tags:
        linux = tag.platform.startswith(("linux_", "manylinux")) and tag.platform.endswith(f"_{platform.machine()}")
        if linux or tag.platform == "any":
            usual = tag.interpreter in (_HEADER_PYTHON, "py3") and not tag.abi.endswith("t")
            ranks.append(0 if usual else 1 if tag.abi == "abi3" else 2)
    return min(ranks, default=None)


def _from_downloads(
    project: str, wanted: SpecifierSet, kind: Kind, settings: Settings, runnable: bool, why: str
) -> Artifact:
    """The file as an earlier run or the user left it in the cache; raises ``FetchFailed`` with ``why`` otherwise."""
    folder = place(settings, "downloads")
    here: list[Artifact] = []
    for path in sorted(folder.iterdir()):
        read = _read_filename(path.name)
        if read is not None and read[0] == canonicalize_name(project):
            here.append(Artifact(read[0], read[1], read[2], path.name, path.as_uri(), size=path.stat().st_size))
    if fits := _fits(here, wanted, kind, runnable):
        return fits[0]
    shown = f"{project} {_shown(wanted)}".strip()
    raise FetchFailed(
        f"{shown} is not in the cache and can't be fetched: {why}",
        f"Go online, set ASTRA_INDEX_URL to an index that answers, or put its {kind} into {folder}",
    )


def _shown(wanted: SpecifierSet) -> str:
    text = str(wanted)
    return text[2:] if text.startswith("==") and "," not in text else text


def _not_there(project: str, wanted: SpecifierSet, kind: Kind, seen: Sequence[Artifact]) -> BadInput:
    """The error for what no index has; it names what there is instead."""
    if not seen:
        return BadInput(f"No package index has the project {project!r}", "Correct the name or set ASTRA_INDEX_URL")
    shown = f"{project} {_shown(wanted)}".strip()
    same = [artifact for artifact in seen if wanted.contains(artifact.version, prereleases=True)]
    versions = sorted({artifact.version for artifact in seen if artifact.kind == kind}, reverse=True)
    if same:
        kinds = ", ".join(sorted({artifact.kind for artifact in same}))
        what = "fitting wheel" if kind == "wheel" else "sdist"
        last = (
            f"The newest version with one is {versions[0]}" if versions else f"No version of it has one ({kinds} only)"
        )
        return BadInput(f"{shown} has no {what} on the package index, only: {kinds}", last)
    return BadInput(f"{shown} is not on the package index", suggestion(_shown(wanted), [str(v) for v in versions]))


def suggestion(wanted: str, names: Sequence[str]) -> str:
    """``Near: …; newest: …`` for a name that isn't among ``names`` (newest first)."""
    series = wanted.rpartition(".")[0]
    near = [name for name in names if series and name.startswith(f"{series}.")]
    near += difflib.get_close_matches(wanted, names, n=_SHOWN, cutoff=0.7)
    near = list(dict.fromkeys(near))[:_SHOWN]
    parts = [f"near: {', '.join(near)}"] if near else []
    newest = [name for name in names[:_SHOWN] if name not in near]
    parts += [f"newest: {', '.join(newest)}"] if newest else []
    text = "; ".join(parts) or "none there"
    return text[0].upper() + text[1:]
