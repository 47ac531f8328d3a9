from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from astra_integrate.errors import MissingTool
from astra_integrate.settings import Settings, load
from astra_integrate.toolchain.discovery import Toolchain, discover, require

from .conftest import toolkit

Make = Callable[..., Settings]

KERNEL = """
#include <cuda_bf16.h>
#include <cub/cub.cuh>
__global__ void sum(const __nv_bfloat16* in, float* out) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float total = Reduce(storage).Sum(__bfloat162float(in[threadIdx.x]));
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}
"""


def test_what_the_system_lacks_comes_from_wheels(bare: Path, make_settings: Make) -> None:
    found = discover(make_settings())
    assert found.tool("nvcc").origin == "wheel nvidia-cuda-nvcc 13.0.88"
    assert found.tool("nvdisasm").origin == "wheel nvidia-cuda-nvdisasm 13.5.37"
    assert found.nvcc is not None
    assert found.cuda_home == found.nvcc.parent.parent
    assert found.cuda_includes == (found.cuda_home / "include" / "cccl", found.cuda_home / "include")


def test_a_system_toolkit_without_disassemblers_takes_only_those_from_wheels(
    bare: Path, make_settings: Make, tmp_path: Path, index: Path
) -> None:
    home = toolkit(tmp_path / "local" / "cuda", "13.0.88")
    shutil.rmtree(index / "nvidia-cuda-nvcc")
    found = discover(make_settings())
    assert (found.nvcc, found.tool("nvcc").origin) == (home / "bin" / "nvcc", "system")
    assert found.tool("cuobjdump").origin == "wheel nvidia-cuda-cuobjdump 13.5.37"


def test_a_complete_system_toolkit_fetches_nothing(bare: Path, make_settings: Make, tmp_path: Path) -> None:
    home = toolkit(tmp_path / "local" / "cuda", "13.0.88", disassemblers=True)
    settings = make_settings()
    assert discover(settings).cuobjdump == home / "bin" / "cuobjdump"
    assert not settings.cache.exists()


@pytest.mark.parametrize(
    ("overrides", "fetch", "cause"),
    [
        ({}, False, "astra doctor --fetch"),
        ({"offline": True}, True, "offline"),
        ({"index_url": "file:///nowhere/simple"}, True, "nvidia-cuda-nvcc"),
    ],
)
def test_what_can_not_be_had_is_told_where_it_is_needed(
    bare: Path, make_settings: Make, overrides: dict[str, object], fetch: bool, cause: str
) -> None:
    found = discover(make_settings(**overrides), fetch=fetch)
    assert found.nvcc is None
    with pytest.raises(MissingTool, match=f"(?s)nvcc is missing.*ASTRA_CUDA_HOME.*{cause}") as raised:
        require(found, "nvcc")
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


def test_require_passes_what_is_there_and_knows_the_field_names(bare: Path, make_settings: Make) -> None:
    found = discover(make_settings())
    require(found, "nvcc", "cuobjdump", "clang", "clang_resource")
    with pytest.raises(MissingTool, match=r"c\+\+ is missing\. Install a C\+\+ compiler"):
        require(found, "nvcc", "cxx")


def test_found_once_per_process(bare: Path, make_settings: Make) -> None:
    settings = make_settings()
    assert discover(settings) is discover(settings)


@pytest.mark.network
def test_with_wheels_only_a_kernel_compiles_and_disassembles(
    bare: Path, settings_: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = shutil.which("g++", path="/usr/bin:/usr/local/bin:/bin")
    if compiler is None:
        pytest.skip("no g++ here")
    found = discover(load(home=settings_.home, cxx=compiler))
    if found.nvcc is None:
        pytest.skip(f"the tool wheels could not be fetched: {found.tool('nvcc').mend}")
    assert found.tool("nvcc").origin.startswith("wheel nvidia-cuda-nvcc 13.0.")
    assert found.tool("cuobjdump").origin.startswith("wheel nvidia-cuda-cuobjdump 13.")
    listing = _disassembled(found, tmp_path)
    assert "Function : _Z3sumPK13__nv_bfloat16Pf" in listing
    assert "SHFL" in listing
    assert "STG.E" in listing


def _disassembled(found: Toolchain, folder: Path) -> str:
    source, cubin = folder / "kernel.cu", folder / "kernel.cubin"
    source.write_text(KERNEL, encoding="utf-8")
    compile_ = [str(found.nvcc), *found.ccbin, "-std=c++20", "-arch=sm_90a", "-cubin", str(source), "-o", str(cubin)]
    done = subprocess.run(compile_, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run(
        [str(found.cuobjdump), "-sass", str(cubin)], capture_output=True, text=True, check=True
    ).stdout
