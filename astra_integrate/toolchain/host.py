"""The host's C++ compiler and its standard library."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from astra_integrate.errors import BadInput
from astra_integrate.settings import Settings

from .tool import Tool, first_number, output

_MEND = "Install a C++ compiler: `apt-get install g++`, `dnf install gcc-c++` or `pacman -S gcc`; or set ASTRA_CXX"
_HEADERS_MEND = "Install the C++ standard library's headers: `apt-get install g++` or `dnf install libstdc++-devel`"


def find_cxx(settings: Settings) -> tuple[Tool, tuple[Path, ...]]:
    """The C++ compiler and the folders of its standard library, in the compiler's own order.

    ``settings.cxx`` first, then ``CXX``, then g++, c++, clang++. A compiler that can't find its own
    ``<vector>`` counts as missing. Raises :class:`BadInput` where ``settings.cxx`` isn't a program.
    """
    if settings.cxx and shutil.which(settings.cxx) is None:
        raise BadInput(f"ASTRA_CXX names {settings.cxx!r}, which is not a program", "Correct or unset it")
    mend = _MEND
    for name in [settings.cxx] if settings.cxx else [os.environ.get("CXX", ""), "g++", "c++", "clang++"]:
        # CXX may hold a launcher ("ccache g++"); nvcc's -ccbin takes a program only, so such a value is passed over.
        found = shutil.which(name) if name else None
        if found is None:
            continue
        path = Path(found)
        includes = library_includes(path)
        if includes:
            return Tool("c++", path, _version(path), _origin(name, settings), ""), includes
        mend = f"{path} finds no <vector>. {_HEADERS_MEND}"
    return Tool("c++", None, mend=mend), ()


def library_includes(cxx: Path) -> tuple[Path, ...]:
    """The C++ standard library's include folders of ``cxx``; empty where it has none.

    Only these: the compiler's own builtin headers (``.../lib/gcc/.../include``) would clash with
    clang's, and the C library's folders are the same for both.
    """
    text = output(cxx, "-E", "-x", "c++", "-", "-v", stdin="#include <vector>\n")
    if text is None:
        return ()
    block = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", text, re.DOTALL)
    folders = [Path(line.strip()) for line in block.group(1).splitlines()] if block else []
    return tuple(folder for folder in folders if "c++" in folder.parts and folder.is_dir())


def _version(cxx: Path) -> str:
    # -dumpfullversion is GCC's; clang refuses it and prints its number with -dumpversion.
    return first_number((output(cxx, "-dumpfullversion", "-dumpversion") or output(cxx, "--version") or "").strip())


def _origin(name: str, settings: Settings) -> str:
    if settings.cxx:
        return "setting cxx"
    return "variable CXX" if name == os.environ.get("CXX") else "system"
