"""Fetch a file into the cache: checked, whole or not at all, once for all processes."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

import requests

from ..errors import FetchFailed
from ..progress import Task, step
from ..settings import Settings
from .cache import locked, place, staged
from .disk import require_space, size_text
from .index import Artifact
from .pip_configuration import configuration
from .transport import CONNECT_SECONDS, patiently, reason, session

log = logging.getLogger(__name__)
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Downloaded:
    """A file of the cache and the SHA-256 (hex) of its bytes."""

    path: Path
    sha256: str


def download(artifact: Artifact, settings: Settings) -> Downloaded:
    """``artifact``'s file in the cache, fetched if it isn't there or its bytes are not the index's.

    Raises ``FetchFailed`` for an unreachable server, a full disk, or bytes that don't match the
    checksum (they are removed).
    """
    path = place(settings, "downloads") / artifact.filename
    with locked(path):
        if path.is_file():
            digest = file_digest(path)
            if artifact.sha256 in (None, digest):
                return Downloaded(path, digest)
            path.unlink()
        if settings.offline or artifact.url == path.as_uri():
            raise FetchFailed(
                f"{artifact.filename} is no longer in the cache and can't be fetched now",
                f"Go online or put the file into {path.parent}",
            )
        if artifact.size:
            require_space(path.parent, artifact.size, artifact.filename)
        with staged(path) as building:
            digest = _fetch(artifact, building, settings)
        return Downloaded(path, digest)


def _fetch(artifact: Artifact, building: Path, settings: Settings) -> str:
    setup = configuration(settings)
    shown = f"Fetching {artifact.project} {artifact.version}"
    shown += f" ({size_text(artifact.size)})" if artifact.size else ""
    with session(setup) as client, step(shown, artifact.size) as task:
        try:
            digest = patiently(lambda: _stream(client, artifact.url, building, setup.seconds, task))
        except requests.RequestException as error:
            raise FetchFailed(
                f"{artifact.filename} can't be fetched: {reason(error)}",
                f"Go online, set ASTRA_INDEX_URL, or put the file into {building.parent}",
            ) from error
    if artifact.sha256 is None:
        log.debug("the index gives no checksum for %s", artifact.filename)
    elif digest != artifact.sha256:
        raise FetchFailed(
            f"{artifact.filename} arrived damaged: SHA-256 {digest[:16]}…, but the index says {artifact.sha256[:16]}…",
            "Try again; if it stays so, the index or a proxy before it changes files",
        )
    return digest


def _stream(client: requests.Session, url: str, building: Path, seconds: float, task: Task) -> str:
    """Write the body to ``building`` from its start; the SHA-256 of it."""
    digest = hashlib.sha256()
    received = 0
    with client.get(url, stream=True, timeout=(CONNECT_SECONDS, seconds)) as response, building.open("wb") as file:
        response.raise_for_status()
        expected = response.headers.get("Content-Length", "")
        if expected.isdigit():
            task.total(int(expected))
            require_space(building.parent, int(expected), building.name)
        for chunk in response.iter_content(_CHUNK):
            file.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            task.advance(len(chunk))
    if expected.isdigit() and received != int(expected):
        task.advance(-received)
        raise requests.exceptions.ChunkedEncodingError(f"{received} of {expected} bytes arrived")
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
