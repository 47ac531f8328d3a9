"""What astra asks of a framework: one file under ``frameworks/`` answers it, with data beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..records import Binding, CompileFlags


@dataclass(frozen=True)
class HeaderNeed:
    """Headers that the framework's units include, out of a wheel that the framework pins.

    ``version`` is exact or None (the newest that ``specifier`` allows). ``prefix`` is the folder
    inside the wheel that is taken; ``include`` are the include folders, relative to the wheel's root.
    ``optional``: units that don't need it still parse without.
    """

    project: str
    version: str | None
    prefix: str
    include: tuple[str, ...]
    specifier: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Target:
    """Where a name given by the user leads: an op with its host function, or a kernel alone."""

    kernel: str | None
    op: str | None
    host_function: str | None
    units: tuple[str, ...]


@dataclass(frozen=True)
class Accounting:
    """All that an index has to account for: every own file's text, and why some hold no CUDA kernels.

    ``other_device``: whether only another device's build reads a file. ``generated``: whether a file is
    there for sources that the build generates.
    """

    texts: Mapping[str, str]
    other_device: Callable[[str], bool]
    generated: Callable[[str], bool]


class Framework(Protocol):
    """All that is peculiar to one framework. Paths are relative to the source's root, with ``/``."""

    name: str
    project: str
    artifact: Literal["sdist", "wheel"]
    repository: str
    op_data: Path

    def detect(self, root: Path) -> str | None:
        """The framework's version if ``root`` is a source tree or package of it, else None."""

    def own_folders(self, root: Path) -> tuple[str, ...]:
        """Folders that hold the framework's own CUDA code (what a slice may cut out)."""

    def units(self, root: Path) -> tuple[str, ...]:
        """Every CUDA translation unit, sorted; for header-only JIT sources each header is one."""

    def flags(self, root: Path, unit: str, arch: str) -> CompileFlags:
        """Flags for ``unit``, derived from the framework's own build files at that version."""

    def header_needs(self, root: Path) -> tuple[HeaderNeed, ...]:
        """Headers from outside the source."""

    def bindings(self, root: Path) -> tuple[Binding, ...]:
        """Ops with schema and host function, from registrations (text level; cheap)."""

    def with_callers(self, root: Path, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        """``bindings`` with the Python places that call each op (reads the Python files: seconds)."""

    def accounting(self, root: Path) -> Accounting:
        """What the index must account for."""

    def find(self, root: Path, name: str) -> tuple[Target, ...]:
        """What ``name`` (op, kernel, qualified kernel) can mean; empty when nothing (cheap: no parse)."""

    def known_names(self, root: Path) -> tuple[str, ...]:
        """Every op and kernel name that :meth:`find` knows, for suggestions."""
