"""The process in which candidate code runs: ``python worker.py JOBS.json``; needs nothing but Python itself.

One line of JSON per finished run goes to stdout. Each job runs in a child of its own, with limits
on memory, processor time and wall time, with no environment and no way to grow a file. Tensors lie
in memory that both share, each between guard pages; inputs are write-protected in the child. All
checks and comparisons happen outside of the child.

What this does not protect from: a library that means harm can still read what the user can read,
open connections, and kill processes. Candidates are device code; that is checked before it gets here.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = 4096
SLACK = 0xA5  # fills what alignment leaves between a tensor and its guard pages
_PROT_NONE, _PROT_READ, _PROT_WRITE = 0, 1, 2
_MAP_SHARED, _MAP_ANONYMOUS, _MAP_NORESERVE = 0x01, 0x20, 0x4000
_REPORT_BYTES = 4096
_STATUS = {0: "ok", 1: "refused", 2: "error", 3: "mismatch", 4: "unreached", 70: "crash", 71: "lacks", 72: "timeout"}
_KINDS = {"none": 0, "tensor": 1, "float": 2, "integer": 3, "string": 4, "list": 5}
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class _Argument(ctypes.Structure):
    """``emu_argument`` of the runtime's host.hpp."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("dims", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_char_p),
        ("real", ctypes.c_double),
        ("integer", ctypes.c_int64),
        ("text", ctypes.c_char_p),
    )


def _map(size: int) -> int:
    address = _libc.mmap(None, size, _PROT_READ | _PROT_WRITE, _MAP_SHARED | _MAP_ANONYMOUS | _MAP_NORESERVE, -1, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise MemoryError(f"no {size} bytes of memory for a tensor")
    return int(address)


@dataclass
class Region:
    """A tensor's memory: guard page, slack, the tensor's span of bytes, slack, guard page.

    With ``at_end`` the span ends within 15 bytes of the guard page behind (its address keeps its
    remainder modulo 16), else it starts ``offset`` bytes behind the page boundary, as torch would place it.
    """

    span: int
    offset: int
    at_end: bool
    first: int = 0  # bytes before the part that is filled and read
    base: int = 0
    whole: int = 0
    start: int = 0

    def __post_init__(self) -> None:
        """Map the memory and fill the slack; raises ``MemoryError``."""
        self.whole = max(PAGE, -(-(self.span + self.offset) // PAGE) * PAGE)
        self.base = _map(self.whole + 2 * PAGE) + PAGE
        _libc.mprotect(self.base - PAGE, PAGE, _PROT_NONE)
        _libc.mprotect(self.base + self.whole, PAGE, _PROT_NONE)
        self.start = self.base + self.offset
        if self.at_end:
            rest = self.offset % 16
            self.start = (self.base + self.whole - self.span - rest) // 16 * 16 + rest
        ctypes.memset(self.base, SLACK, self.start - self.base)
        ctypes.memset(self.start + self.span, SLACK, self.base + self.whole - self.start - self.span)

    def fill(self, data: bytes) -> None:
        """Write the tensor's bytes."""
        ctypes.memmove(self.start + self.first, data, self.span - self.first)

    def read(self) -> bytes:
        """The tensor's bytes."""
        return ctypes.string_at(self.start + self.first, self.span - self.first)

    def stray(self) -> str:
        """Where the slack was written to, relative to the tensor; empty when it wasn't."""
        for begin, end, what in (
            (self.base, self.start, "before its start"),
            (self.start + self.span, self.base + self.whole, "past its end"),
        ):
            slack = ctypes.string_at(begin, end - begin)
            if slack.count(SLACK) != len(slack):
                first = next(i for i, byte in enumerate(slack) if byte != SLACK)
                distance = end - begin - first if begin == self.base else first
                return f"{distance} bytes {what}"
        return ""

    def close(self) -> None:
        """Give the memory back."""
        _libc.munmap(self.base - PAGE, self.whole + 2 * PAGE)


def run_job(job: dict[str, Any], folder: Path, limits: dict[str, Any]) -> dict[str, Any]:
    """Run one job in a child; the outcome with status, report and seconds. Outputs go to files of ``folder``."""
    regions: dict[int, Region] = {}
    report = _map(_REPORT_BYTES)
    outcome: dict[str, Any] = {"job": job["id"], "status": "ok", "report": "", "seconds": 0.0, "runs": 0}
    try:
        for position, argument in enumerate(job["arguments"]):
            if argument["kind"] == "tensor":
                at_end = job["order"] == "reverse"
                regions[position] = Region(argument["span"], argument["offset_bytes"], at_end, argument["first"])
        _drive(job, regions, report, folder, limits, outcome)
    finally:
        for region in regions.values():
            region.close()
        _libc.munmap(report, _REPORT_BYTES)
    return outcome


def _drive(
    job: dict[str, Any],
    regions: dict[int, Region],
    report: int,
    folder: Path,
    limits: dict[str, Any],
    outcome: dict[str, Any],
) -> None:
    go_read, go_write = os.pipe()
    done_read, done_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go_write)
        os.close(done_read)
        _child(job, regions, report, limits, go_read, done_write)
    os.close(go_read)
    os.close(done_write)
    began = time.monotonic()
    try:
        for number, files in enumerate(job["runs"]):
            given = {int(position): (folder / name).read_bytes() for position, name in files.items()}
            for position, data in given.items():
                regions[position].fill(data)
            # Where the child is gone already, waiting for it tells why.
            with contextlib.suppress(BrokenPipeError):
                os.write(go_write, b"g")
            code = _wait(child, done_read, job["seconds"])
            outcome["report"] = ctypes.string_at(report).decode("utf-8", "replace")
            outcome["status"] = code if isinstance(code, str) else _STATUS.get(code, "crash")
            if outcome["status"] != "ok":
                outcome["report"] = outcome["report"] or f"the process ended with code {code}"
                return
            if not _inspect(job, regions, given, number, folder, outcome):
                return
            outcome["runs"] = number + 1
    finally:
        outcome["seconds"] = time.monotonic() - began
        os.close(go_write)
        os.close(done_read)
        _reap(child)


def _inspect(
    job: dict[str, Any],
    regions: dict[int, Region],
    given: dict[int, bytes],
    number: int,
    folder: Path,
    outcome: dict[str, Any],
) -> bool:
    for position, region in regions.items():
        argument = job["arguments"][position]
        stray = region.stray()
        if stray:
            outcome.update(status="crash", report=f"writes out of bounds of '{argument['name']}': {stray}")
            return False
        if argument["role"] == "in":
            if region.read() != given[position]:
                outcome.update(status="crash", report=f"writes to '{argument['name']}', which the op may only read")
                return False
        else:
            (folder / f"{job['id']}.{number}.{position}.out").write_bytes(region.read())
    return True


def _wait(child: int, done: int, seconds: float) -> int | str:
    ready, _, _ = select.select([done], [], [], seconds)
    if not ready:
        os.kill(child, signal.SIGKILL)
        return "timeout"
    told = os.read(done, 1)
    if told:
        return told[0]
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    return "timeout" if number in (signal.SIGXCPU, signal.SIGKILL) else 128 + number


def _reap(child: int) -> None:
    try:
        finished, _ = os.waitpid(child, os.WNOHANG)
        if not finished:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    except ChildProcessError:
        return  # already waited for


def _child(
    job: dict[str, Any], regions: dict[int, Region], report: int, limits: dict[str, Any], go: int, done: int
) -> None:
    """Never returns: the code that is tried must not reach the parent's Python."""
    try:
        # A tensor of which only the last rows are touched takes addresses, not memory.
        sparse = sum(region.whole for region in regions.values()) if job["tail"] else 0
        _limit(job["seconds"], limits["bytes"] + sparse)
        library = ctypes.CDLL(job["library"])
        library.emu_setup(ctypes.c_void_p(report), ctypes.c_int(job["order"] == "reverse"))
        library.emu_tail(ctypes.c_uint64(job["rows"]), ctypes.c_uint64(job["tail"]))
        kept: list[Any] = []
        arguments = (_Argument * len(job["arguments"]))()
        for position, argument in enumerate(job["arguments"]):
            _fill(arguments[position], argument, regions.get(position), kept)
            if position in regions:
                _publish(library, argument, regions[position], kept)
        for _ in job["runs"]:
            if os.read(go, 1) != b"g":
                break
            code = library.emu_entry(arguments, len(arguments))
            os.write(done, bytes([code & 0xFF]))
            if code:
                break
    except BaseException as error:  # noqa: BLE001  the edge of the process: told in the report, then it ends
        text = f"{type(error).__name__}: {error}".encode()[: _REPORT_BYTES - 1] + b"\0"
        ctypes.memmove(report, text, len(text))
        os._exit(70)
    os._exit(0)


def _publish(library: ctypes.CDLL, argument: dict[str, Any], region: Region, kept: list[Any]) -> None:
    name = argument["name"].encode()
    kept.append(name)
    read_only = argument["role"] == "in"
    library.emu_region(
        ctypes.c_char_p(name), ctypes.c_void_p(region.start), ctypes.c_size_t(max(region.span, 1)), int(read_only)
    )
    if read_only:
        _libc.mprotect(region.base, region.whole, _PROT_READ)


def _fill(target: _Argument, argument: dict[str, Any], region: Region | None, kept: list[Any]) -> None:
    target.kind = _KINDS[argument["kind"]]
    if region is not None:
        sizes = (ctypes.c_int64 * max(1, len(argument["shape"])))(*argument["shape"])
        strides = (ctypes.c_int64 * max(1, len(argument["shape"])))(*argument["strides"])
        name = argument["dtype"].encode()
        kept += [sizes, strides, name]
        target.dims, target.data = len(argument["shape"]), region.start
        target.sizes, target.strides, target.dtype = sizes, strides, name
    elif argument["kind"] == "float":
        target.real = argument["value"]
    elif argument["kind"] == "integer":
        target.integer = argument["value"]
    elif argument["kind"] == "string":
        text = argument["value"].encode()
        kept.append(text)
        target.text = text


def _limit(wall: float, memory: int) -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    seconds = max(1, int(wall) + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def main(path: str) -> None:
    """Run every job of the file in turn. After a time-out the rest is told as not run."""
    folder = Path(path).parent
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    stopped = False
    for job in document["jobs"]:
        if stopped:
            outcome = {"job": job["id"], "status": "skipped", "report": "", "seconds": 0.0, "runs": 0}
        else:
            outcome = run_job(job, folder, document["limits"])
            stopped = outcome["status"] == "timeout"
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
