"""The CUDA and C++ files of a framework as text, with what refers to what: names, includes, units.

This answers "where could that be?" in well under a second, before anything is parsed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from astra_integrate.extract import cpp_text

_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;<>]*>)?\s*\(")
SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".inl")


@dataclass(eq=False)
class CudaFiles:
    """Texts by path relative to ``root``; ``units`` are what a compiler is run on."""

    root: Path
    texts: dict[str, str]
    units: tuple[str, ...]
    include_dirs: tuple[str, ...]
    _plain: dict[str, str] = field(default_factory=dict)

    def plain(self, path: str) -> str:
        """The text without comments, literals' insides and what only ROCm sees; same offsets as the file's."""
        if path not in self._plain:
            self._plain[path] = cpp_text.blank(cpp_text.without_rocm(self.texts[path]), strings=True)
        return self._plain[path]

    @cached_property
    def kernels(self) -> dict[str, tuple[str, ...]]:
        """Kernel name → files that hold a ``__global__`` function of that name, ROCm-only text left out."""
        found: dict[str, set[str]] = {}
        for path, text in self.texts.items():
            if "__global__" in text:
                for mention in cpp_text.global_mentions(self.plain(path)):
                    if mention.name:
                        found.setdefault(mention.name, set()).add(path)
        return {name: tuple(sorted(paths)) for name, paths in sorted(found.items())}

    @cached_property
    def includers(self) -> dict[str, set[str]]:
        """File → files that include it directly."""
        found: dict[str, set[str]] = {}
        for path, text in self.texts.items():
            for name, _quoted in cpp_text.includes(text):
                target = self._resolve(path, name)
                if target is not None:
                    found.setdefault(target, set()).add(path)
        return found

    def _resolve(self, path: str, name: str) -> str | None:
        for folder in (posixpath.dirname(path), *self.include_dirs):
            candidate = posixpath.normpath(posixpath.join(folder, name))
            if candidate in self.texts:
                return candidate
        return None

    def units_of(self, path: str) -> tuple[str, ...]:
        """Units that see ``path``: itself, or those that include it, nearest first."""
        units = set(self.units)
        seen, ring, found = {path}, [path], []
        while ring:
            found += sorted(item for item in ring if item in units)
            ring = sorted({user for item in ring for user in self.includers.get(item, ())} - seen)
            seen.update(ring)
        return tuple(found)

    def called_from(self, function: str) -> tuple[str, ...]:
        """Files that define what ``function`` calls: for dispatchers that hold no device code themselves."""
        name = function.split("::")[-1]
        called: set[str] = set()
        for path in self.defining(function):
            plain = self.plain(path)
            for start in cpp_text.definitions(plain, name):
                body = plain.index("{", cpp_text.closing(plain, plain.index("(", start)))
                called.update(_CALL.findall(plain, body, cpp_text.closing(plain, body)))
        called.discard(name)
        return tuple(dict.fromkeys(path for other in sorted(called) for path in self.defining(other)))

    def defining(self, function: str) -> tuple[str, ...]:
        """Files that define ``function`` (last component of a qualified name)."""
        name = function.split("::")[-1]
        word = re.compile(rf"\b{re.escape(name)}\b")
        return tuple(
            path
            for path, text in self.texts.items()
            if name in text and word.search(text) and cpp_text.definitions(self.plain(path), name)
        )


def load(
    root: Path, folders: Sequence[str], units: Sequence[str], include_dirs: Sequence[str], skip: str = r"(?!)"
) -> CudaFiles:
    """Read all files below ``folders``; paths that match the regular expression ``skip`` are left out."""
    paths = [
        path
        for folder in folders
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SUFFIXES and path.is_file() and not re.search(skip, path.relative_to(root).as_posix())
    ]
    stamp = hash(tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths))
    return _load(root, tuple(p.relative_to(root).as_posix() for p in paths), tuple(units), tuple(include_dirs), stamp)


@lru_cache(maxsize=8)
def _load(
    root: Path, paths: tuple[str, ...], units: tuple[str, ...], include_dirs: tuple[str, ...], stamp: int
) -> CudaFiles:
    del stamp  # only there so that a changed file is read anew
    return CudaFiles(root, {path: cpp_text.read(root / path) for path in paths}, units, include_dirs)
