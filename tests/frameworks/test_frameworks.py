"""From names to targets on real sources, and what a framework is told apart by."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from astra_integrate import frameworks
from astra_integrate.errors import BadInput


def test_the_names_and_an_unknown_one():
    assert frameworks.names() == ("vllm", "sglang")
    with pytest.raises(BadInput, match="no framework 'tgi'"):
        frameworks.get("tgi")


def test_an_unrelated_folder_is_no_framework(tmp_path):
    assert [frameworks.get(name).detect(tmp_path) for name in frameworks.names()] == [None, None]


def test_a_package_without_cuda_sources_says_so(tmp_path):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    (tmp_path / "vllm" / "_version.py").write_text("__version__ = version = '9.9'\n")
    vllm = frameworks.get("vllm")
    assert vllm.detect(tmp_path) == "9.9"
    assert vllm.units(tmp_path) == ()
    with pytest.raises(BadInput, match="holds no CUDA sources"):
        vllm.find(tmp_path, "anything")


def test_the_jit_sources_are_found_wherever_a_version_has_them(tmp_path):
    for package in ("sglang/kernels/jit", "python/sglang/jit_kernel"):
        root = tmp_path / package.replace("/", "-")
        folder = root / package / "csrc" / "rows"
        folder.mkdir(parents=True)
        (root / package.split("/sglang")[0] / ("__init__.py" if package.startswith("sglang") else "")).touch()
        top = root / ("sglang" if package.startswith("sglang") else "python/sglang")
        (top / "__init__.py").write_text("")
        (folder / "fold.cuh").write_text("__global__ void fold() {}\n")
        (folder / "amd.cuh").write_text("#ifndef USE_ROCM\n#error only ROCm\n#endif\n")
        (folder / "hip.cu").write_text("#include <hip/hip_runtime.h>\n")
        (folder / "either.cuh").write_text("#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#endif\n")
        sglang = frameworks.get("sglang")
        names = [Path(unit).name for unit in sglang.units(root)]
        assert names == ["either.cuh", "fold.cuh"]


@pytest.mark.network
@pytest.mark.parametrize("fixture", ["vllm_0_12", "vllm_0_33"])
def test_finding_an_op_and_a_kernel_in_vllm(request, fixture):
    root = Path(request.getfixturevalue(fixture).root)
    vllm = frameworks.get("vllm")
    (target,) = vllm.find(root, "silu_and_mul")
    assert (target.op, target.host_function, target.units) == (
        "silu_and_mul",
        "silu_and_mul",
        ("csrc/activation_kernels.cu",),
    )
    assert vllm.find(root, "_C::silu_and_mul") == vllm.find(root, "silu_and_mul")
    (kernel,) = vllm.find(root, "vllm::act_and_mul_kernel")
    assert kernel.op is None and kernel.units == ("csrc/activation_kernels.cu",)
    assert vllm.find(root, "no_such_kernel") == ()
    start = time.perf_counter()
    vllm.find(root, "rms_norm")
    assert time.perf_counter() - start < 1.0


@pytest.mark.network
def test_an_op_whose_function_has_another_name(vllm_0_33):
    (target,) = frameworks.get("vllm").find(Path(vllm_0_33.root), "silu_and_mul_with_clamp")
    assert target.host_function == "silu_and_mul_clamp"


@pytest.mark.network
def test_all_ops_of_vllm_have_schema_and_a_defining_file(vllm_0_33):
    bindings = frameworks.get("vllm").bindings(Path(vllm_0_33.root))
    assert len(bindings) == 163
    assert all(b.schema_text and b.host_file for b in bindings)


@pytest.mark.network
def test_what_vllm_pins(vllm_0_12, vllm_0_33):
    vllm = frameworks.get("vllm")
    versions = [
        next(n.version for n in vllm.header_needs(Path(s.root)) if n.project == "torch") for s in (vllm_0_12, vllm_0_33)
    ]
    assert versions == ["2.9.0", "2.14.0"]


@pytest.mark.network
def test_finding_an_export_a_python_function_and_a_kernel_in_sglang(sglang_0_5_23):
    root = Path(sglang_0_5_23.root)
    sglang = frameworks.get("sglang")
    (export,) = sglang.find(root, "fused_add_rmsnorm")
    assert export.host_function == "FusedAddRMSNormKernel::run"
    assert export.units == ("sglang/kernels/jit/csrc/elementwise/fused_add_rmsnorm.cuh",)
    assert "run_activation" in {target.op for target in sglang.find(root, "silu_and_mul")}
    (kernel,) = sglang.find(root, "act_and_mul_kernel")
    assert kernel.kernel == "act_and_mul_kernel"
    flags = sglang.flags(root, kernel.units[0], "sm_90a")
    assert flags.standard == "c++20"
    assert "SGL_CUDA_ARCH=900" in flags.defines
    assert "--use_fast_math" in flags.nvcc
    assert len(sglang.bindings(root)) == 300
