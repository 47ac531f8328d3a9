"""The patched unit: compiled, the new kernel found in it, its code compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate.measure.compile import cubin
from astra_integrate.records import CompileFlags
from astra_integrate.reinject.unit import compile_unit
from astra_integrate.toolchain.discovery import Toolchain

FLAGS = CompileFlags(standard="c++17", include_dirs=("include",))
HEADER = "#pragma once\ntemplate <typename T>\n__global__ void k_m(T* p, int n) { p[threadIdx.x] *= n; }\n"
MORE = "__constant__ float table[4];\n__global__ void before(float* p) { p[0] = table[1]; }\n"
UNIT = MORE + '#include "k.cuh"\ntemplate __global__ void k_m<float>(float*, int);\n'
SLICE = HEADER + "template __global__ void k_m<float>(float*, int);\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "include").mkdir(parents=True)
    (tmp_path / "root" / "include" / "k.cuh").write_text(HEADER)
    (tmp_path / "root" / "unit.cu").write_text(UNIT)
    return tmp_path / "root"


def _compile(root: Path, toolchain: Toolchain, text: str = SLICE, **rest):  # type: ignore[no-untyped-def]
    own = cubin(text, CompileFlags(standard="c++17"), "sm_90a", toolchain, root.parent / "cubins")
    unit = rest.pop("unit", "unit.cu")
    return compile_unit(root, unit, FLAGS, "sm_90a", toolchain, root.parent / "out", marker="_m", candidate=own, **rest)


def test_the_unit_holds_the_candidates_code(root: Path, toolchain: Toolchain) -> None:
    built = _compile(root, toolchain)
    assert built.ok and built.same_sass is True, built
    assert built.marked_kernels == ("k_m<float>",)
    assert built.detail.startswith("1 of 1 kernels")


def test_other_code_is_told_by_name(root: Path, toolchain: Toolchain) -> None:
    built = _compile(root, toolchain, SLICE.replace("*= n", "+= n"))
    assert built.ok and built.same_sass is False
    assert "different: k_m<float>" in built.detail


def test_a_kernel_that_the_unit_does_not_hold_is_no_proof(root: Path, toolchain: Toolchain) -> None:
    built = _compile(root, toolchain, SLICE + "template __global__ void k_m<int>(int*, int);\n")
    assert built.same_sass is False and "not in the unit: k_m<int>" in built.detail
    (root / "unit.cu").write_text(MORE)
    built = _compile(root, toolchain)
    assert not built.ok and "no kernel named *_m" in built.error


def test_a_header_is_compiled_with_the_instantiations(root: Path, toolchain: Toolchain) -> None:
    built = _compile(root, toolchain, unit="include/k.cuh", instantiations=("k_m<float>",))
    assert built.ok and built.same_sass is True, built


def test_a_unit_that_does_not_compile_gives_the_compilers_words(root: Path, toolchain: Toolchain) -> None:
    (root / "unit.cu").write_text(UNIT + "int x = nothing;\n")
    built = _compile(root, toolchain)
    assert not built.ok and built.same_sass is None
    assert 'unit.cu:5: identifier "nothing" is undefined' in built.error
