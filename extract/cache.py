"""Results of read units, addressed by content: arguments, the unit, every header it read.

An entry lies at ``<cache>/units/<key of the request>/<digest of all files>.json``. A result is used when
the files that *it* lists hash to its own name, so an edited header finds no entry and an edit taken back
finds the old one. Entries are written beside and renamed: processes may share the folder, and deleting
any of it costs only time.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from clang import cindex
from pydantic import ValidationError

from astra_integrate import __version__
from astra_integrate.extract.worker import UnitRequest, UnitResult
from astra_integrate.records import digest_of
from astra_integrate.records.base import Record

_KEPT = 4
# The modules that decide what a unit's result says.
_READING = (
    *("worker", "parsing", "locations", "declarations", "extents", "lexing", "kernel_record", "body_hash", "kernels"),
    *("launches", "kernel_search", "sites", "cursors", "cpp_text", "demangle"),
)


class Entry(Record):
    """A result with the (path, SHA-256) of the files it came from; own files start with ``@root/``."""

    files: tuple[tuple[str, str], ...]
    result: UnitResult


class UnitCache:
    """The cache below ``folder``; digests of files are remembered for the life of the object."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}

    def get(self, request: UnitRequest) -> UnitResult | None:
        """The result for an unchanged unit, or None."""
        place = self._place(request)
        if not place.is_dir():
            return None
        for path in sorted(place.glob("*.json"), key=_age):
            try:
                entry = Entry.from_json(path.read_bytes())
            except (OSError, ValidationError):
                continue  # taken away or half written by an old version: it is read anew
            if self._name(request, [name for name, _ in entry.files]) == path.stem:
                return entry.result
        return None

    def put(self, request: UnitRequest, result: UnitResult) -> UnitResult:
        """Store a result and return it as :meth:`get` will; the oldest of one request beyond a few are dropped."""
        files = tuple(self._marked(request, name) for name in result.files)
        place = self._place(request)
        place.mkdir(parents=True, exist_ok=True)
        entry = Entry(
            files=tuple((name, self._digest(request, name)) for name in files),
            result=result.model_copy(update={"files": files}),
        )
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".new-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(entry.to_json())
        os.replace(temporary, place / f"{self._name(request, files)}.json")
        for old in sorted(place.glob("*.json"), key=_age)[_KEPT:]:
            old.unlink(missing_ok=True)
        return entry.result

    def _place(self, request: UnitRequest) -> Path:
        arguments = tuple(argument.replace(request.root, "@root") for argument in request.arguments)
        parts = (__version__, _reader(), request.unit, *request.own_folders, *arguments)
        return self._folder / "units" / digest_of("\0".join(parts))[:32]

    def _name(self, request: UnitRequest, files: list[str] | tuple[str, ...]) -> str:
        return digest_of("\0".join(f"{name}={self._digest(request, name)}" for name in files))

    def _marked(self, request: UnitRequest, name: str) -> str:
        root = request.root.rstrip("/") + "/"
        return "@root/" + name[len(root) :] if name.startswith(root) else name

    def _digest(self, request: UnitRequest, name: str) -> str:
        path = name.replace("@root", request.root, 1) if name.startswith("@root/") else name
        if path not in self._digests:
            try:
                self._digests[path] = digest_of(Path(path).read_bytes())
            except OSError:
                self._digests[path] = "gone"
        return self._digests[path]


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


@cache
def _reader() -> str:
    """What reads: libclang's version and astra's own reading code, so that neither's change finds old results."""
    folder = Path(__file__).parent
    own = [folder / f"{name}.py" for name in _READING] + sorted((folder / "stubs").rglob("*.h"))
    return digest_of("\0".join((_libclang(), *(digest_of(path.read_bytes()) for path in own))))


def _libclang() -> str:
    library = cindex.conf.lib
    library.clang_getClangVersion.restype = cindex._CXString
    return str(cindex._CXString.from_result(library.clang_getClangVersion()))
