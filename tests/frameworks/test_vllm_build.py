"""What a CMake project in vLLM's style compiles, and with which flags."""

from __future__ import annotations

import pytest

from astra_integrate.frameworks.vllm import VLLM
from astra_integrate.frameworks.vllm_build import evaluate, loose_intersection

CMAKE = """\
set(CMAKE_CXX_STANDARD 20)
set(CUDA_SUPPORTED_ARCHS "8.0;9.0;10.0")
set(HIP_SUPPORTED_ARCHS "gfx942")
if(CUDA_FOUND)
  set(VLLM_GPU_LANG "CUDA")
  extract_unique_cuda_archs_ascending(CUDA_ARCHS "x")
else()
  set(VLLM_GPU_LANG "HIP")
endif()
get_torch_gpu_compiler_flags(VLLM_GPU_FLAGS ${VLLM_GPU_LANG})
set(SRC "csrc/both.cu")
if(VLLM_GPU_LANG STREQUAL "HIP")
  list(APPEND SRC "csrc/other.cu")
else()
  cuda_archs_loose_intersection(FAST_ARCHS "9.0a" "${CUDA_ARCHS}")
  if(${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 12.0 AND FAST_ARCHS)
    set(FAST "csrc/fast.cu")
    set_gencode_flags_for_srcs(SRCS "${FAST}" CUDA_ARCHS "${FAST_ARCHS}")
    set_property(SOURCE ${FAST} APPEND PROPERTY COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:CUDA>:--use_fast_math>")
    list(APPEND SRC ${FAST})
    list(APPEND VLLM_GPU_FLAGS "-DENABLE_FAST=1")
  endif()
endif()
define_extension_target(_C DESTINATION vllm LANGUAGE ${VLLM_GPU_LANG} SOURCES ${SRC} COMPILE_FLAGS ${VLLM_GPU_FLAGS}
  USE_SABI 3 WITH_SOABI)
target_compile_definitions(_C PRIVATE TARGET_VERSION=7)
"""
HELPERS = """\
function (get_torch_gpu_compiler_flags OUT LANG)
  if (${LANG} STREQUAL "CUDA")
    run_python(FLAGS "from torch.utils.cpp_extension import COMMON_NVCC_FLAGS; print()" "no")
    list(APPEND FLAGS "-DENABLE_SMALL")
    list(REMOVE_ITEM FLAGS "-D__CUDA_NO_HALF_OPERATORS__" "-D__CUDA_NO_HALF_CONVERSIONS__")
  endif()
  set(${OUT} ${FLAGS} PARENT_SCOPE)
endfunction()
"""


@pytest.fixture
def tree(tmp_path):
    for name in ("both", "fast", "other", "cpu/c", "rocm/r"):
        path = tmp_path / "csrc" / f"{name}.cu"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake" / "utils.cmake").write_text(HELPERS)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "setup.py").write_text('default_cfg = "Debug" if debug else "RelWithDebInfo"\n')
    return tmp_path


def test_units_are_what_the_cuda_build_compiles(tree):
    assert VLLM().units(tree) == ("csrc/both.cu", "csrc/fast.cu")
    assert "csrc/other.cu" in evaluate(tree, "HIP").compiled()


def test_flags_come_from_target_file_and_helpers(tree):
    flags = VLLM().flags(tree, "csrc/both.cu", "sm_90a")
    assert flags.standard == "c++20"
    assert set(flags.defines) >= {
        "ENABLE_SMALL",
        "ENABLE_FAST=1",
        "TARGET_VERSION=7",
        "TORCH_EXTENSION_NAME=_C",
        "NDEBUG",
    }
    assert "__CUDA_NO_HALF_OPERATORS__" not in flags.defines
    assert "__CUDA_NO_HALF2_OPERATORS__" in flags.defines
    assert "--expt-relaxed-constexpr" in flags.nvcc and "-O2" in flags.nvcc
    assert "--use_fast_math" not in flags.nvcc
    assert flags.include_dirs == ("csrc",)
    assert flags.assumed


def test_a_files_own_options_and_architectures(tree):
    assert "--use_fast_math" in VLLM().flags(tree, "csrc/fast.cu", "sm_90a").nvcc
    assert not [a for a in VLLM().flags(tree, "csrc/fast.cu", "sm_90a").assumed if "only" in a]
    assert [a for a in VLLM().flags(tree, "csrc/fast.cu", "sm_80").assumed if "9.0a only" in a]


def test_a_changed_build_file_is_read_anew(tree):
    assert len(VLLM().units(tree)) == 2
    (tree / "CMakeLists.txt").write_text(CMAKE.replace('"csrc/both.cu"', ""))
    assert VLLM().units(tree) == ("csrc/fast.cu",)


def test_without_a_build_file_all_but_other_devices_are_units(tree):
    (tree / "CMakeLists.txt").unlink()
    assert VLLM().units(tree) == ("csrc/both.cu", "csrc/fast.cu", "csrc/other.cu")
    assert any("no target" in a for a in VLLM().flags(tree, "csrc/both.cu", "sm_90a").assumed)


@pytest.mark.parametrize(
    ("wanted", "built", "expected"),
    [
        (["9.0a"], ["8.0", "9.0"], ["9.0a"]),
        (["9.0a"], ["8.0"], []),
        (["8.0+PTX"], ["9.0"], ["8.0+PTX"]),
        (["8.0"], ["9.0"], []),
        (["7.5", "8.0", "8.6"], ["8.0", "8.9"], ["8.0", "8.6"]),
        (["12.0f"], ["12.1"], ["12.0f"]),
        (["9.0a", "8.0+PTX"], ["9.0"], ["9.0a"]),
    ],
)
def test_which_architectures_a_file_is_built_for(wanted, built, expected):
    assert loose_intersection(wanted, built) == expected


@pytest.mark.network
def test_the_real_builds(vllm_0_12, vllm_0_33):
    from pathlib import Path

    old, new = Path(vllm_0_12.root), Path(vllm_0_33.root)
    assert (len(VLLM().units(old)), len(VLLM().units(new))) == (71, 91)
    before, after = (VLLM().flags(root, "csrc/activation_kernels.cu", "sm_90a") for root in (old, new))
    assert (before.standard, after.standard) == ("c++17", "c++20")
    assert "ENABLE_FP8" in before.defines and "USE_CUDA" not in before.defines
    assert {"USE_CUDA", "TORCH_TARGET_VERSION=0x020B000000000000ULL"} <= set(after.defines)
    assert not [unit for unit in VLLM().units(new) if "rocm" in unit]
