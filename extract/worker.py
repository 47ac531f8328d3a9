"""One translation unit read in a process of its own: ``python -m astra_integrate.extract.worker REQUEST REPLY``.

A parser that crashes, hangs or eats memory on one file must not take the others with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from astra_integrate.extract import parsing
from astra_integrate.extract.declarations import OwnFiles, declarations
from astra_integrate.extract.kernels import kernels
from astra_integrate.extract.launches import launches
from astra_integrate.records import Kernel, Launch
from astra_integrate.records.base import Record


class UnitRequest(Record):
    """What to read: ``root`` and ``arguments`` are absolute, ``unit`` and ``own_folders`` relative to the root."""

    root: str
    unit: str
    arguments: tuple[str, ...]
    own_folders: tuple[str, ...]


class Skipped(Record):
    """Bytes that a false ``#if`` hid in this unit."""

    file: str
    start: int
    end: int


class Mentions(Record):
    """A function or class and the framework's own names that it mentions."""

    name: str
    file: str
    names: tuple[str, ...]


class Problem(Record):
    """An error of the parser; ``file`` is relative where it is the framework's own."""

    severity: str
    text: str
    file: str | None
    line: int


class UnitResult(Record):
    """All that one unit tells. ``files`` are all files it read, absolute, in the order of inclusion."""

    unit: str
    kernels: tuple[Kernel, ...] = ()
    launches: tuple[Launch, ...] = ()
    mentions: tuple[Mentions, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    problems: tuple[Problem, ...] = ()
    fatal: bool = False
    files: tuple[str, ...] = ()


def read(request: UnitRequest) -> UnitResult:
    """Parse the unit (past fatal errors, which stay reported) and collect kernels, launches and references."""
    root = Path(request.root)
    unit = parsing.parse(root / request.unit, request.arguments, keep_going=True)
    own = OwnFiles.of(root, request.own_folders)
    found = declarations(unit, own)
    seen = launches(found, own)
    diagnostics = list(unit.diagnostics)
    if unit.cause is not None and unit.cause not in diagnostics:
        diagnostics.insert(0, unit.cause)
    return UnitResult(
        unit=request.unit,
        kernels=kernels(found, request.unit),
        launches=tuple(seen.launches[key] for key in sorted(seen.launches)),
        mentions=tuple(
            Mentions(name=function.name, file=function.file, names=tuple(sorted(function.mentions)))
            for function in seen.functions
            if function.mentions
        ),
        skipped=tuple(
            Skipped(file=name, start=start, end=end)
            for file, start, end in parsing.skipped_ranges(unit)
            if (name := own.relative(file)) is not None
        ),
        problems=tuple(
            Problem(severity=d.severity, text=d.text, file=own.relative(d.file) or d.file, line=d.line)
            for d in diagnostics
        ),
        fatal=unit.fatal,
        files=parsing.files_read(unit),
    )


def main(request_path: str, reply_path: str) -> None:
    """Read the request's file, write the reply's."""
    request = UnitRequest.from_json(Path(request_path).read_bytes())
    Path(reply_path).write_text(read(request).to_json(), encoding="utf-8", errors="surrogateescape")


if __name__ == "__main__":
    main(*sys.argv[1:])
