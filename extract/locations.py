"""Where a syntax-tree location is: in the file that spells it, at the expansion, or mapped to the file.

libclang's Python module only wraps the expansion location, which for everything inside a macro is
the macro's call. An edit needs the place that *spells* a token, so the other two are called directly.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from clang import cindex


@dataclass(frozen=True)
class Place:
    """A position: 1-based ``line`` and ``column``, byte ``offset``; ``file`` is None for built-in text."""

    file: str | None
    line: int
    column: int
    offset: int


_FOUR = [ctypes.POINTER(ctypes.c_void_p), *[ctypes.POINTER(ctypes.c_uint)] * 3]
_wrapped: dict[str, Any] = {}


def spelling_location(location: cindex.SourceLocation) -> Place:
    """The place whose bytes spell the token; inside a macro body, the body in its ``#define``."""
    return _place("clang_getSpellingLocation", location)


def expansion_location(location: cindex.SourceLocation) -> Place:
    """The outermost macro call for a token that comes out of a macro, else the token itself."""
    return _place("clang_getExpansionLocation", location)


def file_location(location: cindex.SourceLocation) -> Place:
    """For a macro argument, the argument where it is written; for a macro body, the macro's call."""
    return _place("clang_getFileLocation", location)


def _place(function_name: str, location: cindex.SourceLocation) -> Place:
    function = _wrapped.get(function_name)
    if function is None:
        function = getattr(cindex.conf.lib, function_name)
        function.argtypes = [cindex.SourceLocation, *_FOUR]
        function.restype = None
        _wrapped[function_name] = function
    file, line, column, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    function(location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset))
    name = file_name(file.value) if file.value else None
    return Place(name, line.value, column.value, offset.value)


_names: dict[int, str] = {}


def forget_files() -> None:
    """Drop remembered file names: libclang reuses the addresses once a translation unit is gone."""
    _names.clear()


def file_name(handle: int) -> str:
    """The path that libclang opened for a ``CXFile`` handle.

    Locations come by the hundred thousand, files by the hundred: names are remembered until a new parse.
    """
    known = _names.get(handle)
    if known is None:
        opened: Any = cindex.File
        known = _names[handle] = str(opened(ctypes.cast(handle, cindex.c_object_p)).name)
    return known
