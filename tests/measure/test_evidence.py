"""Static facts of small kernels of our own, each made to have one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate.measure.compile import cubin, ptxas_log
from astra_integrate.measure.evidence import access_bits, evidence, parse_ptxas, unmarked
from astra_integrate.measure.sass import Instruction
from astra_integrate.records import CompileFlags, KernelEvidence, StaticEvidence
from astra_integrate.toolchain.discovery import Toolchain

TEXT = """
#include <cuda_bf16.h>
__global__ void narrow(__nv_bfloat16* p, const __nv_bfloat16* q) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void words(float* p, const float* q) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void wide(float4* p, const float4* q) { p[threadIdx.x] = q[threadIdx.x]; }
__global__ void pairs(float2* p, const float2* q) { p[threadIdx.x] = __ldg(q + threadIdx.x); }
__global__ void divide(float* p) { p[threadIdx.x] = 1.5f / p[threadIdx.x]; }
__global__ void divide_fast(float* p) { p[threadIdx.x] = __fdividef(1.5f, p[threadIdx.x]); }
__global__ void exponent(float* p) { p[threadIdx.x] = __expf(p[threadIdx.x]); }
__global__ void shuffle(int* p) {
  int x = p[threadIdx.x];
  for (int o = 16; o; o /= 2) x += __shfl_xor_sync(~0u, x, o);
  p[threadIdx.x] = x;
}
__global__ void barrier(float* p) {
  __shared__ float s[256];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[255 - threadIdx.x];
}
__global__ void atomic(float* p, float* q) { atomicAdd(p, q[threadIdx.x]); }
__global__ void indexed(int* p) {
  int a[32];
  for (int i = 0; i < 32; ++i) a[i] = p[i];
  for (int i = 0; i < p[50]; ++i) a[p[i] & 31] += a[p[i + 1] & 31];
  p[0] = a[p[40] & 31] + a[p[41] & 31];
}
"""
SPILLS = """
__global__ void spills(float* p, const float* q, int n) {
  float r[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) r[i] = q[i * 32 + threadIdx.x];
  for (int k = 0; k < n; ++k) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 96; ++i) r[i] = r[i] * r[(i + 7) % 96] + k;
  }
#pragma unroll
  for (int i = 0; i < 96; ++i) p[i * 32 + threadIdx.x] = r[i];
}
"""


@pytest.fixture(scope="module")
def found(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> StaticEvidence:
    path = cubin(TEXT, CompileFlags(standard="c++17"), "sm_90a", toolchain, tmp_path_factory.mktemp("cubins"))
    return evidence(path, ptxas_log(path), toolchain, "sm_90a")


def _of(found: StaticEvidence, name: str) -> KernelEvidence:
    (kernel,) = [k for k in found.kernels if k.name == name]
    return kernel


@pytest.mark.parametrize(("name", "bits"), [("narrow", 16), ("words", 32), ("pairs", 64), ("wide", 128)])
def test_access_widths(found: StaticEvidence, name: str, bits: int) -> None:
    kernel = _of(found, name)
    assert kernel.global_loads == ((bits, 1),) and kernel.global_stores == ((bits, 1),)


def test_a_division_calls_its_slow_path_and_a_fast_one_does_not(found: StaticEvidence) -> None:
    assert _of(found, "divide").calls == 1 and _of(found, "divide_fast").calls == 0
    assert _of(found, "divide_fast").special == 1


def test_special_functions_shuffles_barriers_shared_memory_and_atomics(found: StaticEvidence) -> None:
    assert _of(found, "exponent").special == 1
    assert _of(found, "shuffle").shuffles == 5
    barrier = _of(found, "barrier")
    assert (barrier.barriers, barrier.shared_bytes, barrier.shared_loads, barrier.shared_stores) == (1, 1024, 1, 1)
    assert _of(found, "atomic").atomics >= 1
    plain = _of(found, "words")
    assert not (plain.calls or plain.special or plain.shuffles or plain.barriers or plain.atomics or plain.branches)


def test_an_indexed_array_lies_in_local_memory_and_is_no_spill(found: StaticEvidence) -> None:
    kernel = _of(found, "indexed")
    assert kernel.stack_bytes >= 128 and kernel.local_accesses > 0
    assert kernel.spill_store_bytes == kernel.spill_load_bytes == 0


def test_spills_come_from_the_log(toolchain: Toolchain, tmp_path: Path) -> None:
    flags = CompileFlags(standard="c++17", nvcc=("-maxrregcount=32",))
    path = cubin(SPILLS, flags, "sm_90a", toolchain, tmp_path)
    (kernel,) = evidence(path, ptxas_log(path), toolchain, "sm_90a").kernels
    assert kernel.spill_store_bytes > 0 and kernel.spill_load_bytes > 0 and kernel.registers <= 32
    (roomy,) = evidence(*_built(SPILLS, toolchain, tmp_path), toolchain, "sm_90a").kernels
    assert roomy.spill_store_bytes == 0 and roomy.registers > 96


def _built(text: str, toolchain: Toolchain, folder: Path) -> tuple[Path, str]:
    path = cubin(text, CompileFlags(standard="c++17"), "sm_90a", toolchain, folder)
    return path, ptxas_log(path)


def test_without_a_log_the_cubin_tells_sizes(toolchain: Toolchain, tmp_path: Path, found: StaticEvidence) -> None:
    path, _ = _built(TEXT, toolchain, tmp_path)
    silent = evidence(path, "", toolchain, "sm_90a")
    assert [(k.name, k.registers, k.shared_bytes, k.stack_bytes) for k in silent.kernels] == [
        (k.name, k.registers, k.shared_bytes, k.stack_bytes) for k in found.kernels
    ]


def test_what_made_it_is_named(found: StaticEvidence, toolchain: Toolchain) -> None:
    assert found.arch == "sm_90a" and found.compiler == f"nvcc {toolchain.tool('nvcc').version}"


def test_ptxas_words() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kv' for 'sm_90a'
ptxas info    : Function properties for _Z1kv
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Function properties for _Z6calledv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
    assert parse_ptxas(log) == {
        "_Z1kv": {
            "stack_bytes": 16,
            "spill_store_bytes": 12,
            "spill_load_bytes": 8,
            "registers": 255,
            "shared_bytes": 4096,
        }
    }


@pytest.mark.parametrize(
    ("opcode", "bits"),
    [("LDG.E.U8", 8), ("LDG.E.S16.CONSTANT", 16), ("LDG.E", 32), ("LDG.E.LTC128B", 32), ("LDG.E.64.STRONG.GPU", 64),
     ("LDGSTS.E.BYPASS.128", 128), ("LDG.E.ENL2.256", 256)],
)  # fmt: skip
def test_widths_of_opcodes(opcode: str, bits: int) -> None:
    assert access_bits(Instruction(0, "", opcode, opcode)) == bits


def test_markers_come_off() -> None:
    assert unmarked("ns::k_astra_0123abcd<ns::f_astra_0123abcd<int>>") == "ns::k<ns::f<int>>"
    assert unmarked("k_astra_0123") == "k_astra_0123"
