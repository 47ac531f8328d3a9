from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
from clang import cindex

from astra_integrate.errors import BadInput
from astra_integrate.settings import Settings
from astra_integrate.toolchain import system

from .conftest import program, toolkit

Make = Callable[..., Settings]


def test_the_setting_comes_before_the_variable_and_path(
    bare: Path, make_settings: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, other = toolkit(tmp_path / "wanted", "13.0.88"), toolkit(tmp_path / "other", "13.1.80")
    monkeypatch.setenv("CUDA_HOME", str(other))
    assert system.find_cuda(make_settings(cuda_home=wanted)) == (wanted, "13.0.88", "setting cuda_home")
    assert system.find_cuda(make_settings()) == (other, "13.1.80", "variable CUDA_HOME")


def test_nvcc_on_path_may_be_a_wrapper_script(bare: Path, make_settings: Make, tmp_path: Path) -> None:
    home = toolkit(tmp_path / "opt" / "toolkit", "13.0.88")
    wrapper = program(bare / "nvcc", "13.0.88")
    wrapper.write_text(f"#!/bin/sh\necho '#$ _HERE_={home}/bin'\necho '#$ TOP={home}/bin/..'\n", encoding="utf-8")
    assert system.find_cuda(make_settings())[0] == home


def test_the_newest_of_the_usual_places_is_taken(bare: Path, make_settings: Make, tmp_path: Path) -> None:
    toolkit(tmp_path / "local" / "cuda-12.9", "12.9.10")
    newest = toolkit(tmp_path / "local" / "cuda-13.10", "13.10.1")
    toolkit(tmp_path / "local" / "cuda-13.9", "13.9.1")
    assert system.find_cuda(make_settings())[0] == newest


@pytest.mark.parametrize(
    ("version", "without", "fault"),
    [("11.8.89", "", "older than 12.4"), ("13.0.88", "cccl/cub/cub.cuh", "header cub/cub.cuh is missing")],
)
def test_an_old_or_incomplete_toolkit_is_passed_over_and_the_reason_told(
    bare: Path,
    make_settings: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    without: str,
    fault: str,
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(toolkit(tmp_path / "bad", version, without=without)))
    home, _, reason = system.find_cuda(make_settings())
    assert home is None
    assert fault in reason
    good = toolkit(tmp_path / "local" / "cuda", "13.0.88")
    assert system.find_cuda(make_settings())[0] == good


def test_a_setting_that_is_no_toolkit_is_an_error_not_passed_over(
    bare: Path, make_settings: Make, tmp_path: Path
) -> None:
    toolkit(tmp_path / "local" / "cuda", "13.0.88")
    with pytest.raises(BadInput, match="it has no bin/nvcc"):
        system.find_cuda(make_settings(cuda_home=tmp_path))


def test_the_setting_wheels_passes_the_systems_toolkit_over(bare: Path, make_settings: Make, tmp_path: Path) -> None:
    toolkit(tmp_path / "local" / "cuda", "13.0.88")
    assert system.find_cuda(make_settings(cuda_home="wheels"))[0] is None


def test_cuda_13_has_cccl_first(tmp_path: Path) -> None:
    home = toolkit(tmp_path / "cuda", "13.0.88")
    assert system.cuda_includes(home) == (home / "include" / "cccl", home / "include")


def test_disassemblers_count_only_as_a_pair(bare: Path, tmp_path: Path) -> None:
    program(bare / "cuobjdump", "13.0.85")
    assert system.find_disassemblers(None) is None
    program(bare / "nvdisasm", "13.0.85")
    assert system.find_disassemblers(None) == (bare / "cuobjdump", bare / "nvdisasm")


def test_clang_headers_belong_to_the_parser_that_is_installed() -> None:
    found = system.find_clang()
    assert found.path is not None
    assert (found.path / "include" / "__clang_cuda_runtime_wrapper.h").is_file()

    class Text(ctypes.Structure):
        _fields_ = (("data", ctypes.c_char_p), ("flags", ctypes.c_uint))

    library = ctypes.CDLL(cindex.conf.get_filename())
    library.clang_getClangVersion.restype = Text
    parser = library.clang_getClangVersion().data.decode()
    assert f"version {'.'.join(found.version.split('.')[:2])}." in parser


def test_no_git_names_the_package_to_install(bare: Path) -> None:
    assert system.find_git().path is None
    assert "apt-get install git" in system.find_git().mend
