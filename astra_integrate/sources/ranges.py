"""Part of a remote wheel by HTTP range reads: the central directory, then only the spans that hold what is wanted."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import requests

from ..progress import Task
from .disk import require_space
from .transport import CONNECT_SECONDS, patiently

_TAIL = 64 << 10
_GAP = 256 << 10
_SPAN = 32 << 20
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")


class NoRanges(Exception):
    """The server doesn't answer range requests in a usable way; fetch the whole file instead."""


class _Remote:
    """A remote file and its sparse local copy: bytes that were read lie at their own offset."""

    def __init__(self, url: str, client: requests.Session, seconds: float, file: BinaryIO, task: Task) -> None:
        self._url, self._client, self._file, self._task = url, client, file, task
        self._timeout = (CONNECT_SECONDS, seconds)
        self.size = self._read(f"-{_TAIL}")
        self.start = max(0, self.size - _TAIL)

    def _read(self, span: str) -> int:
        """Fetch ``span`` into the copy; the whole file's size."""
        return patiently(lambda: self._once(span))

    def _once(self, span: str) -> int:
        wanted = {"Range": f"bytes={span}"}
        with self._client.get(self._url, headers=wanted, timeout=self._timeout, stream=True) as response:
            if response.status_code in (200, 416, 501):
                raise NoRanges(f"it answered {response.status_code} to a range request")
            response.raise_for_status()
            told = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers.get("Content-Range", ""))
            if response.status_code != 206 or told is None:
                raise NoRanges(f"it answered {response.status_code} without a usable range")
            first, last, size = (int(part) for part in told.groups())
            self._file.seek(first)
            left = last - first + 1
            for chunk in response.iter_content(1 << 18):
                left -= len(chunk)
                if left < 0:
                    break
                self._file.write(chunk)
                self._task.advance(len(chunk))
        if left:
            raise requests.exceptions.ChunkedEncodingError("a range arrived cut off or too long")
        return size

    def need(self, start: int, end: int) -> None:
        """Fetch bytes ``start`` to ``end`` (exclusive), long spans in several requests."""
        for first in range(start, end, _SPAN):
            last = min(end, first + _SPAN) - 1
            if self._read(f"{first}-{last}") != self.size:
                raise NoRanges("the file changed between two requests")

    def bytes(self, start: int, length: int) -> bytes:
        """Bytes of the copy, fetched first where they lie before what is there."""
        if start < self.start:
            self.need(start, self.start)
            self.start = start
        self._file.flush()
        self._file.seek(start)
        return self._file.read(length)


def fetch_members(
    url: str, client: requests.Session, seconds: float, copy: Path, keep: Callable[[str], bool], task: Task
) -> int:
    """Write to ``copy`` a sparse zip in which exactly the entries that ``keep`` names can be read.

    Returns the number of bytes that these entries unpack to. Raises :class:`NoRanges` where the
    server can't give parts and ``requests`` errors for other failures.
    """
    with copy.open("w+b") as file:
        remote = _Remote(url, client, seconds, file, task)
        file.truncate(remote.size)
        directory = _directory_start(remote)
        remote.bytes(directory, 0)
        file.flush()
        with zipfile.ZipFile(copy) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
        ends = [entry.header_offset for entry in entries[1:]] + [directory]
        wanted = [(entry, end) for entry, end in zip(entries, ends, strict=True) if keep(entry.filename)]
        unpacked = sum(entry.file_size for entry, _ in wanted)
        spans = _coalesced([(entry.header_offset, min(end, remote.start)) for entry, end in wanted])
        require_space(copy.parent, unpacked + sum(end - start for start, end in spans), copy.name)
        for start, end in spans:
            remote.need(start, end)
    return unpacked


def _coalesced(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending spans joined where the gap between them costs less than another request."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if start >= end:
            continue
        if joined and start - joined[-1][1] < _GAP:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _directory_start(remote: _Remote) -> int:
    """Offset of the zip's central directory, from its end record (or the 64-bit one)."""
    tail = remote.bytes(remote.start, remote.size - remote.start)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + _END.size:
        raise zipfile.BadZipFile("no end record")
    start = int(_END.unpack_from(tail, at)[6])
    if start == 0xFFFFFFFF:
        locator = tail[at - _LOCATOR64.size : at] if at >= _LOCATOR64.size else b""
        if locator[:4] != b"PK\x06\x07":
            raise zipfile.BadZipFile("no 64-bit end record")
        record = remote.bytes(int(_LOCATOR64.unpack(locator)[2]), _END64.size)
        if record[:4] != b"PK\x06\x06":
            raise zipfile.BadZipFile("no 64-bit end record")
        start = int(_END64.unpack(record)[9])
    if start > remote.size:
        raise zipfile.BadZipFile("the central directory lies outside the file")
    return start
