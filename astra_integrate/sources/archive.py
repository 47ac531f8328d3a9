"""Unpacking of archives that nobody vouches for: nothing leaves the folder, nothing half-done stays."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from ..errors import BadInput
from ..progress import step
from .cache import staged
from .disk import require_space

SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar", ".zip", ".whl")
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,
)
_CLASHES = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL}
_CHUNK = 1 << 20
_TYPICAL_RATIO = 5  # source code, gzip


@dataclass(frozen=True)
class Limits:
    """What an archive may unpack to: number of entries and bytes in all."""

    entries: int = 200_000
    bytes: int = 8 << 30


LIMITS = Limits()


@dataclass(frozen=True)
class _Member:
    """One entry; ``target`` is where a link points; ``open`` gives a file's bytes (at most ``size``)."""

    name: str
    kind: Literal["file", "folder", "symlink", "hardlink"]
    size: int
    executable: bool
    target: str
    open: Callable[[], IO[bytes]]


def is_archive(path: Path) -> bool:
    """True where the file's name says that :func:`unpack` can read it."""
    return path.name.endswith(SUFFIXES)


def unpack(
    archive: Path,
    folder: Path,
    *,
    keep: Callable[[str], bool] = lambda name: True,
    executable: Callable[[str], bool] = lambda name: False,
    strip: bool = False,
    limits: Limits = LIMITS,
) -> None:
    """Unpack ``archive`` (tar, zip or wheel) to ``folder``, which must not exist; its parent must.

    ``keep`` chooses entries by name, ``executable`` names those that get the bit even though the
    archive has none, ``strip`` drops a single top folder that holds everything.
    Raises :class:`BadInput` for a damaged, truncated, oversized or escaping archive and
    ``FetchFailed`` on a full disk; then nothing is left behind.
    """
    with step(f"Unpacking {archive.name}"), staged(folder) as building:
        building.mkdir()
        links: list[tuple[Path, str, str]] = []
        try:
            with closing(_members(archive, folder.parent, keep, limits)) as members:
                count = total = 0
                for member in members:
                    count += 1
                    total += member.size
                    if count > limits.entries or total > limits.bytes:
                        raise _unsafe(
                            archive, f"it unpacks to more than {limits.entries} entries or {limits.bytes} bytes"
                        )
                    path = building / _inside(archive, member.name)
                    if not keep(member.name) or path == building:
                        continue
                    _place(archive, member, path, building, links, executable(member.name))
        except _DAMAGE as error:
            raise BadInput(
                f"The archive {archive.name} is damaged or cut off ({_first_line(error)})",
                f"Delete {archive} and fetch it again",
            ) from error
        _link(archive, links, building)
        if strip:
            _strip(building)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")


def _unsafe(archive: Path, why: str) -> BadInput:
    return BadInput(f"The archive {archive.name} is refused: {why}", "Take it from the project's own release")


def _inside(archive: Path, name: str) -> PurePosixPath:
    """``name`` as a relative path without ``..``."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise _unsafe(archive, f"the entry {name!r} leads outside the folder")
    return path


def _place(
    archive: Path, member: _Member, path: Path, root: Path, links: list[tuple[Path, str, str]], executable: bool
) -> None:
    """Write one entry. Links wait: while no link exists, no entry can be written through one."""
    try:
        if member.kind == "folder":
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if member.kind == "symlink":
            links.append((path, member.target, member.name))
        elif member.kind == "hardlink":
            target = root / _inside(archive, member.target)
            if not target.is_file():
                raise _unsafe(archive, f"the link {member.name!r} has no target")
            os.link(target, path)
        else:
            with member.open() as source, path.open("wb") as written:
                shutil.copyfileobj(source, written, _CHUNK)
            if path.stat().st_size != member.size:
                raise BadInput(
                    f"The archive {archive.name} is damaged: {member.name!r} is cut off", f"Delete {archive}"
                )
    except OSError as error:
        if error.errno in _CLASHES:
            raise _unsafe(archive, f"the entry {member.name!r} can't be written ({error.strerror})") from error
        raise
    if member.kind != "symlink" and (member.executable or executable):
        path.chmod(0o755)


def _link(archive: Path, links: list[tuple[Path, str, str]], root: Path) -> None:
    """Make the symbolic links, then look where each really leads: only inside ``root`` is allowed."""
    for path, target, name in links:
        if os.path.isabs(target) or path.exists() or path.is_symlink():
            raise _unsafe(archive, f"the link {name!r} leads outside the folder or clashes with another entry")
        path.symlink_to(target)
    real = root.resolve()
    for path, _, name in links:
        try:
            inside = path.resolve().is_relative_to(real)
        except (OSError, RuntimeError) as error:
            raise _unsafe(archive, f"the link {name!r} leads round in a circle") from error
        if not inside:
            raise _unsafe(archive, f"the link {name!r} leads outside the folder")


def _strip(folder: Path) -> None:
    """Move the content of a single top folder up."""
    children = list(folder.iterdir())
    if len(children) != 1 or not children[0].is_dir() or children[0].is_symlink():
        return
    top = children[0].rename(folder.with_name(f"{folder.name}-top"))
    folder.rmdir()
    top.rename(folder)


def _members(
    archive: Path, folder: Path, keep: Callable[[str], bool], limits: Limits
) -> Generator[_Member, None, None]:
    if archive.name.endswith((".zip", ".whl")):
        return _zip_members(archive, folder, keep, limits)
    if archive.name.endswith(SUFFIXES):
        require_space(folder, archive.stat().st_size * _TYPICAL_RATIO, archive.name)
        return _tar_members(archive, limits)
    raise BadInput(f"{archive} is not an archive that can be read", f"Known are: {', '.join(SUFFIXES)}")


def _zip_members(
    archive: Path, folder: Path, keep: Callable[[str], bool], limits: Limits
) -> Generator[_Member, None, None]:
    with zipfile.ZipFile(archive) as file:
        infos = file.infolist()
        size = sum(info.file_size for info in infos)
        if len(infos) > limits.entries or size > limits.bytes:
            raise _unsafe(archive, f"it unpacks to {len(infos)} entries and {size} bytes")
        require_space(folder, sum(info.file_size for info in infos if keep(info.filename)), archive.name)
        for info in infos:
            if info.flag_bits & 1:
                raise _unsafe(archive, f"the entry {info.filename!r} is encrypted")
            yield _zip_member(archive, file, info)


def _zip_member(archive: Path, file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    mode = info.external_attr >> 16
    kind: Literal["file", "folder", "symlink"] = "folder" if info.is_dir() else "file"
    target = ""
    if stat.S_IFMT(mode) == stat.S_IFLNK:
        kind = "symlink"
        if info.file_size > 4096:
            raise _unsafe(archive, f"the link {info.filename!r} has no sensible target")
        target = os.fsdecode(file.read(info))
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _unsafe(archive, f"the entry {info.filename!r} is a device or pipe")
    return _Member(info.filename, kind, info.file_size, bool(mode & 0o100), target, lambda: file.open(info))


def _tar_members(archive: Path, limits: Limits) -> Generator[_Member, None, None]:
    with tarfile.open(archive) as file:
        for info in file:
            if info.isfile() or info.isdir():
                kind: Literal["file", "folder", "symlink", "hardlink"] = "file" if info.isfile() else "folder"
            elif info.issym():
                kind = "symlink"
            elif info.islnk():
                kind = "hardlink"
            else:
                raise _unsafe(archive, f"the entry {info.name!r} is a device or pipe")
            size = info.size if kind == "file" else 0
            yield _Member(info.name, kind, size, bool(info.mode & 0o100), info.linkname, _opener(file, info))
        _read_to_end(file, limits)


def _read_to_end(file: tarfile.TarFile, limits: Limits) -> None:
    """Read to the end, for the checksum; only zeros may follow (tarfile takes a damaged header for the end)."""
    stream = file.fileobj
    assert stream is not None
    size = 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if chunk.strip(b"\0") or size > limits.bytes:
            raise tarfile.ReadError("an entry's header is damaged")
    if size < tarfile.BLOCKSIZE:
        raise EOFError("the end mark is missing")


def _opener(file: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        stream = file.extractfile(info)
        if stream is None:
            raise EOFError(f"{info.name} has no bytes")
        return stream

    return opened
