from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.settings import Settings
from astra_integrate.toolchain.host import find_cxx, library_includes

Make = Callable[..., Settings]
GXX = shutil.which("g++")
needs_gxx = pytest.mark.skipif(GXX is None, reason="no g++ here")


@needs_gxx
def test_the_library_folders_are_those_of_the_compiler_without_its_builtin_headers(make_settings: Make) -> None:
    tool, includes = find_cxx(make_settings(cxx="g++"))
    assert tool.path == Path(str(GXX))
    assert tool.version[0].isdigit()
    assert (includes[0] / "vector").is_file()
    assert any((folder / "bits" / "c++config.h").is_file() for folder in includes)
    assert not any((folder / "stdarg.h").is_file() or (folder / "stdio.h").is_file() for folder in includes)


def test_no_compiler_names_the_package_to_install(bare: Path, make_settings: Make) -> None:
    tool, includes = find_cxx(make_settings())
    assert (tool.path, includes) == (None, ())
    assert "apt-get install g++" in tool.mend


def test_a_setting_that_is_no_program_is_an_error(make_settings: Make) -> None:
    with pytest.raises(BadInput, match="no-such-compiler"):
        find_cxx(make_settings(cxx="no-such-compiler"))


@needs_gxx
def test_a_compiler_without_the_standard_library_counts_as_missing(bare: Path, make_settings: Make) -> None:
    broken = bare / "g++"
    broken.write_text(f'#!/bin/sh\nexec {GXX} -nostdinc++ "$@"\n', encoding="utf-8")
    broken.chmod(0o755)
    assert library_includes(broken) == ()
    tool, _ = find_cxx(make_settings())
    assert tool.path is None
    assert f"{broken} finds no <vector>" in tool.mend


@needs_gxx
def test_cxx_variable_is_honoured_and_one_with_a_launcher_passed_over(
    bare: Path, make_settings: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(GXX))
    assert find_cxx(make_settings())[0].origin == "variable CXX"
    monkeypatch.setenv("CXX", f"ccache {GXX}")
    assert find_cxx(make_settings())[0].path is None
