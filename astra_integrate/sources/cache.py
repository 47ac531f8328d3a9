"""The cache's folders: installed whole or not at all, locked between processes, always safe to delete."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from filelock import FileLock

from ..errors import BadInput
from ..settings import Settings
from .disk import writing

STAGING = ".tmp-"
LOCKS = ".locks"
KINDS = ("downloads", "git", "headers", "index", "sources", "toolchain")
_in_use: dict[str, IO[bytes]] = {}


@dataclass(frozen=True)
class CacheEntry:
    """One kind of cached thing: its folder and what it holds (bytes on disk, number of files)."""

    kind: str
    path: Path
    bytes: int
    files: int


def place(settings: Settings, kind: str) -> Path:
    """The folder of one kind (``downloads``, ``sources``, …), made if it isn't there; an absolute real path."""
    folder = settings.cache / kind
    with writing(folder, "the cache"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _lock_file(folder: Path, suffix: str) -> Path:
    locks = folder.parent.parent / LOCKS
    with writing(locks, "the cache"):
        locks.mkdir(parents=True, exist_ok=True)
    return locks / f"{folder.parent.name}-{folder.name}.{suffix}"


@contextmanager
def locked(item: Path) -> Iterator[None]:
    """Hold the only right to install or remove ``item`` (``<cache>/<kind>/<name>``), waiting for others to end."""
    with FileLock(_lock_file(item, "lock")):
        yield


@contextmanager
def staged(item: Path) -> Iterator[Path]:
    """A fresh path beside ``item`` to build it in; moved onto ``item`` when the block ends well, else removed.

    The caller holds :func:`locked`. What a killed process left of the same item is removed first.
    """
    leftover = re.compile(rf"{re.escape(STAGING + item.name)}-\d+-[0-9a-f]{{8}}(-top)?")
    for left in item.parent.iterdir() if item.parent.is_dir() else ():
        if leftover.fullmatch(left.name) and not _alive(left):
            remove(left)
    building = temporary(item)
    try:
        with writing(item.parent, item.name):
            yield building
        building.rename(item)
    finally:
        remove(building)


def temporary(item: Path) -> Path:
    """A path beside ``item`` that no other process has and that is known as left-over once this process is gone."""
    return item.with_name(f"{STAGING}{item.name}-{os.getpid()}-{secrets.token_hex(4)}")


def hold(item: Path) -> Path:
    """Mark ``item`` as in use until this process ends, so that a parallel ``clear`` leaves it; returns ``item``."""
    name = str(item)
    if name not in _in_use:
        file = _lock_file(item, "use").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
        except OSError:  # a file system without locks: the item is then only protected by being rebuilt on demand
            file.close()
            return item
        _in_use[name] = file
    return item


def read_note(path: Path) -> dict[str, Any] | None:
    """A small JSON object of the cache; None where it is missing or damaged (it will be made again)."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) else None


def write_note(path: Path, note: dict[str, Any]) -> None:
    """Write a small JSON object, whole or not at all."""
    building = temporary(path)
    try:
        with writing(path.parent, path.name):
            building.write_text(json.dumps(note, sort_keys=True), encoding="utf-8")
        building.replace(path)
    finally:
        building.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a file or folder of the cache; nothing happens where it isn't there (any more)."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def entries(settings: Settings) -> tuple[CacheEntry, ...]:
    """Every kind in the cache, by name, with its size on disk (hard links and holes not counted)."""
    return tuple(_measure(folder) for folder in _kinds(settings))


def _kinds(settings: Settings) -> list[Path]:
    if not settings.cache.is_dir():
        return []
    return sorted(path for path in settings.cache.iterdir() if path.is_dir() and path.name != LOCKS)


def _measure(folder: Path) -> CacheEntry:
    size = files = 0
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as children:
            for child in children:
                try:
                    if child.is_dir(follow_symlinks=False):
                        pending.append(Path(child.path))
                        continue
                    size += child.stat(follow_symlinks=False).st_blocks * 512
                    files += 1
                except FileNotFoundError:  # another process removed it meanwhile
                    continue
    return CacheEntry(folder.name, folder, size, files)


def clear(settings: Settings, kinds: Iterable[str] = ()) -> int:
    """Remove ``kinds`` (all when empty) from the cache and return the bytes freed.

    An item that another process builds or uses stays. Raises :class:`BadInput` for an unknown kind.
    """
    present = {folder.name: folder for folder in _kinds(settings)}
    wanted = list(kinds) or list(present)
    unknown = sorted(set(wanted) - set(present) - set(KINDS))
    if unknown:
        known = ", ".join(sorted(set(present) | set(KINDS)))
        raise BadInput(f"The cache has no kind {unknown[0]!r}", f"Kinds are: {known}")
    before = sum(_measure(present[kind]).bytes for kind in wanted if kind in present)
    for kind in wanted:
        if kind in present:
            for item in sorted(present[kind].resolve().iterdir()):
                _clear_item(item)
    after = sum(_measure(present[kind]).bytes for kind in wanted if kind in present)
    return max(0, before - after)


def _clear_item(item: Path) -> None:
    if item.name.startswith(STAGING):
        if not _alive(item):
            remove(item)
        return
    with FileLock(_lock_file(item, "lock")), _lock_file(item, "use").open("ab") as use:
        try:
            fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        # Out of sight in one step, so that nobody meets a half-removed folder.
        going = item.with_name(f"{STAGING}{item.name}-gone-{secrets.token_hex(4)}")
        try:
            item.rename(going)
        except FileNotFoundError:
            return
        remove(going)


def _alive(building: Path) -> bool:
    """True where the process that builds ``building`` still runs (its id is in the name)."""
    found = re.search(r"-(\d+)-[0-9a-f]{8}(-top)?$", building.name)
    if found is None:
        return False
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
