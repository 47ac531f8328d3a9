"""Parse a CUDA translation unit with libclang in its device pass.

The device pass is the right one for kernels: in the host pass everything under ``__CUDA_ARCH__``
vanishes and a different SFINAE overload may be chosen. Host functions, launches and macros are in
the tree of the device pass just the same.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clang import cindex

from astra_integrate.errors import BadInput, MissingTool
from astra_integrate.extract import locations
from astra_integrate.records import CompileFlags

if TYPE_CHECKING:
    from astra_integrate.toolchain.discovery import Toolchain

STUBS = Path(__file__).parent / "stubs"
_DETAILED_PREPROCESSING_RECORD = 0x01
_KEEP_GOING = 0x200
_SEVERITIES: tuple[Severity, ...] = ("ignored", "note", "warning", "error", "fatal")
Severity = Literal["ignored", "note", "warning", "error", "fatal"]


@dataclass(frozen=True)
class Diagnostic:
    """One message of the parser; ``file`` is the path as opened, or None."""

    severity: Severity
    text: str
    file: str | None
    line: int


class Unit:
    """A parsed translation unit; ``diagnostics`` are errors and worse, in the parser's order."""

    def __init__(self, tu: Any, path: Path, fatal: Diagnostic | None) -> None:
        self.tu = tu
        self.path = path
        self.diagnostics = _diagnostics(tu)
        self._fatal = fatal

    @property
    def cause(self) -> Diagnostic | None:
        """The fatal message, which ended the parse or (``keep_going``) would have."""
        return self._fatal or next((d for d in self.diagnostics if d.severity == "fatal"), None)

    @property
    def fatal(self) -> bool:
        """Whether the parser met something that ends a parse: what it returned can't be trusted as complete."""
        return self.cause is not None


def clang_arguments(
    toolchain: Toolchain,
    flags: CompileFlags,
    arch: str,
    *,
    root: Path | None = None,
    headers: Sequence[Path] = (),
) -> list[str]:
    """Arguments for the device pass of one unit.

    Args:
        toolchain: gives clang's own headers, CUDA's and libstdc++'s.
        flags: the unit's flags; their include folders may be relative to ``root``.
        arch: for example ``sm_90a``; what depends on it in the source is frozen to it.
        root: the source's root folder; None where all include folders are absolute.
        headers: absolute system include folders of the outside headers.

    Raises:
        MissingTool: clang's resource headers or the CUDA headers are not there.
        BadInput: ``arch`` is not an architecture's name.
    """
    match = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    if match is None:
        raise BadInput(f"{arch!r} is not a GPU architecture", "Give one such as sm_80, sm_90a or sm_100a")
    if toolchain.clang_resource is None:
        raise MissingTool("The headers of clang are missing", "pip install 'libclang-ng>=22,<23'")
    if toolchain.cuda_home is None or not toolchain.cuda_includes:
        raise MissingTool("The CUDA headers are missing", "Run `astra doctor` for the line that mends it")
    resource = toolchain.clang_resource
    base = root or Path()
    arguments = [
        *("-x", "cuda", f"-std={flags.standard}", "-resource-dir", str(resource)),
        f"--cuda-path={toolchain.cuda_home}",
        *(f"--cuda-gpu-arch={arch}", "--cuda-device-only"),
        # Parsing needs no libdevice, but without it clang forgets CUDA's version, and with that the
        # present way to launch (cudaPushCallConfiguration).
        *("-nocudalib", "-Xclang", f"-target-sdk-version={cuda_version(toolchain)}"),
        # -nostdinc++ gives control over libstdc++'s place, and drops the driver's own rule that
        # clang's CUDA wrappers of <new>, <complex> and <algorithm> come before it.
        *("-nostdinc++", "-isystem", str(resource / "include" / "cuda_wrappers")),
    ]
    for folder in (*toolchain.cxx_includes, *toolchain.cuda_includes):
        arguments += ["-isystem", str(folder)]
    arguments += ["-include", str(STUBS / "prelude.h"), f"-D__CUDA_ARCH_LIST__={match[1]}0"]
    arguments += [f"-D{define}" for define in flags.defines]
    for name in flags.include_dirs:
        arguments += ["-I", str(base / name)]
    for header_folder in (*(base / name for name in flags.system_include_dirs), *headers):
        arguments += ["-isystem", str(header_folder)]
    # Last of all: a stub must never hide the real header.
    arguments += ["-idirafter", str(STUBS / "fallback")]
    # clang >= 18 mangles template heads in a way that neither nvcc nor c++filt 2.40 knows.
    arguments += ["-fclang-abi-compat=17", "-Wno-everything", "-ferror-limit=0", "-fno-caret-diagnostics"]
    return arguments


def cuda_version(toolchain: Toolchain) -> str:
    """Version of the CUDA headers, for example ``13.0``; raises MissingTool where there is no ``cuda.h``."""
    for folder in toolchain.cuda_includes:
        header = folder / "cuda.h"
        if header.is_file():
            found = re.search(r"^#define CUDA_VERSION (\d+)", header.read_text(encoding="utf-8"), re.MULTILINE)
            if found:
                return f"{int(found[1]) // 1000}.{int(found[1]) % 1000 // 10}"
    raise MissingTool("cuda.h is missing among the CUDA headers", "Run `astra doctor` for the line that mends it")


def parse(
    path: Path,
    arguments: Sequence[str],
    *,
    text: str | None = None,
    macros: bool = True,
    keep_going: bool = False,
) -> Unit:
    """Parse ``path`` (or ``text`` under that name) and return the unit with its diagnostics.

    Args:
        path: the file; it need not exist where ``text`` is given.
        arguments: from :func:`clang_arguments`.
        text: unsaved content to parse instead of the file's.
        macros: keep macro definitions and expansions in the tree (costs about a tenth more).
        keep_going: after a fatal diagnostic, parse once more past it; the unit stays ``fatal``.

    Raises:
        BadInput: there is no such file, or the parser refuses the arguments.
    """
    if text is None and not path.is_file():
        raise BadInput(f"There is no file {path}", "Check the name of the translation unit")
    unit = Unit(_load(path, arguments, text, macros, 0), path, None)
    if unit.fatal and keep_going:
        cause = unit.cause
        del unit  # two trees at once are more memory than most machines have to spare
        unit = Unit(_load(path, arguments, text, macros, _KEEP_GOING), path, cause)
    return unit


def files_read(unit: Unit) -> tuple[str, ...]:
    """Every file that the unit was made of, itself first; absolute paths as the parser opened them."""
    names = [str(unit.path), *(include.include.name for include in unit.tu.get_includes())]
    return tuple(dict.fromkeys(str(Path(name).absolute()) for name in names))


class _Ranges(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint), ("ranges", ctypes.POINTER(cindex.SourceRange))]


def skipped_ranges(unit: Unit) -> list[tuple[str | None, int, int]]:
    """(file, start, end) of all text that the preprocessor skipped, in any file of the unit."""
    library = cindex.conf.lib
    library.clang_getAllSkippedRanges.restype = ctypes.POINTER(_Ranges)
    library.clang_getAllSkippedRanges.argtypes = [ctypes.c_void_p]
    library.clang_disposeSourceRangeList.argtypes = [ctypes.POINTER(_Ranges)]
    listed = library.clang_getAllSkippedRanges(ctypes.cast(unit.tu.obj, ctypes.c_void_p))
    if not listed:
        return []
    try:
        found = [listed.contents.ranges[index] for index in range(listed.contents.count)]
        places = [(locations.file_location(r.start), locations.file_location(r.end)) for r in found]
    finally:
        library.clang_disposeSourceRangeList(listed)
    return [(start.file, start.offset, end.offset) for start, end in places]


def _load(path: Path, arguments: Sequence[str], text: str | None, macros: bool, options: int) -> Any:
    locations.forget_files()
    unsaved = None if text is None else [(str(path), text)]
    options |= _DETAILED_PREPROCESSING_RECORD if macros else 0
    try:
        index: Any = cindex.Index
        return index.create().parse(str(path), args=list(arguments), unsaved_files=unsaved, options=options)
    except cindex.TranslationUnitLoadError as error:
        raise BadInput(
            f"libclang could not parse {path} at all", "Check the architecture and the flags with `astra doctor`"
        ) from error


def _diagnostics(tu: Any) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(_SEVERITIES[d.severity], d.spelling, d.location.file and d.location.file.name, d.location.line)
        for d in tu.diagnostics
        if d.severity >= cindex.Diagnostic.Error
    )
