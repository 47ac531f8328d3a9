"""The whole way on a real kernel: hand-written candidate → lowering → edits → git → patched unit → same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_integrate import frameworks
from astra_integrate.extract.render import device_text
from astra_integrate.extract.slicing import make_slice
from astra_integrate.measure.compile import cubin, ptxas_log
from astra_integrate.measure.evidence import evidence
from astra_integrate.measure.rank import rank
from astra_integrate.records import Addition, Candidate, LaunchPlan, LaunchStep, Replacement, Slice, Source, Variant
from astra_integrate.reinject import checkout
from astra_integrate.reinject.apply import apply, undo
from astra_integrate.reinject.edits import edits_for
from astra_integrate.reinject.impact import impact
from astra_integrate.reinject.lower import lower
from astra_integrate.reinject.unit import compile_unit
from astra_integrate.settings import Settings
from astra_integrate.toolchain.discovery import Toolchain

pytestmark = pytest.mark.network

KERNEL = """\
template <typename scalar_t, scalar_t (*ACT_FN)(const scalar_t&),
          bool act_first>
__global__ void act_and_mul_kernel(
    scalar_t* __restrict__ out,          // [..., d]
    const scalar_t* __restrict__ input,  // [..., 2, d]
    const int d) {
  constexpr int VEC = 16 / sizeof(scalar_t);
  const scalar_t* gate = input + static_cast<int64_t>(blockIdx.x) * 2 * d;
  const scalar_t* up = gate + d;
  scalar_t* row = out + static_cast<int64_t>(blockIdx.x) * d;
  int done = 0;
  if (is_aligned<16>(gate) && is_aligned<16>(up) && is_aligned<16>(row)) {
    done = d / VEC * VEC;
    for (int i = threadIdx.x; i < d / VEC; i += blockDim.x) {
      int4 gates = VLLM_LDG(reinterpret_cast<const int4*>(gate) + i);
      int4 ups = VLLM_LDG(reinterpret_cast<const int4*>(up) + i);
      scalar_t* x = reinterpret_cast<scalar_t*>(&gates);
      const scalar_t* y = reinterpret_cast<const scalar_t*>(&ups);
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        x[j] = compute<scalar_t, ACT_FN, act_first>(x[j], y[j]);
      }
      reinterpret_cast<int4*>(row)[i] = gates;
    }
  }
  for (int i = done + threadIdx.x; i < d; i += blockDim.x) {
    row[i] = compute<scalar_t, ACT_FN, act_first>(VLLM_LDG(&gate[i]),
                                                  VLLM_LDG(&up[i]));
  }
}"""
HELPER = """\
template <int BYTES, typename T>
__device__ __forceinline__ bool is_aligned(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % BYTES == 0;
}"""
BLOCK = "max(32, min(ceil_div(d, 16 / sizeof(scalar_t)), 1024))"


@pytest.fixture(scope="module")
def cut_out(vllm_0_12: Source, settings_: Settings, toolchain: Toolchain) -> Slice:
    (target,) = frameworks.get("vllm").find(Path(vllm_0_12.root), "silu_and_mul")
    return make_slice(vllm_0_12, target, settings_, toolchain)


def _candidate(slice: Slice) -> Candidate:
    (kernel,) = [d for d in slice.declarations if d.is_kernel]
    step = LaunchStep(kernel="act_and_mul_kernel", block=BLOCK)
    return Candidate(
        id="hand",
        slice_digest=slice.digest,
        replaced=(Replacement(declaration=kernel.id, text=KERNEL),),
        added=(Addition(anchor=kernel.id, name="is_aligned", text=HELPER),),
        plan=LaunchPlan(variants=(Variant(steps=(step,)),)),
        author="person",
        strategy="16-byte loads and stores",
    )


def test_a_vectorised_kernel_goes_in_and_is_found_in_the_built_unit(
    cut_out: Slice, settings_: Settings, toolchain: Toolchain, tmp_path: Path
) -> None:
    slice, framework = cut_out, frameworks.get("vllm")
    root = Path(slice.source.root)
    lowering = lower(slice, _candidate(slice))
    cubins = [
        cubin(device_text(slice, change, keep).text, slice.flags, slice.arch, toolchain, settings_.cache / "cubins")
        for change, keep in ((None, slice.instantiations), (lowering, lowering.instantiations))
    ]
    before, after = (evidence(path, ptxas_log(path), toolchain, slice.arch) for path in cubins)
    (ranked,) = rank(before, [("hand", after)])
    assert ranked.advantage and "→128 bit" in ranked.reason, ranked

    edits = edits_for(slice, lowering)
    assert {edit.extent.file for edit in edits} == {slice.unit}
    assert impact(slice, lowering, framework.bindings(root)).ops == ("silu_and_mul",)
    copy = checkout.checkout(slice.source, framework.own_folders(root), tmp_path / "copy")
    done = apply(copy, edits)
    checkout.verify(copy, checkout.diff(copy))
    assert checkout.changed_files(copy) == (slice.unit,)
    removed = checkout.run_git(copy, "diff", "--numstat").split()[1]
    assert removed == b"1", "one line of the launcher changes, all else is new"
    added = [line[1:] for line in checkout.diff(copy).split("\n") if line.startswith("+") and line[1:3] != "++"]
    assert max(map(len, added)) <= 80

    built = compile_unit(
        copy,
        slice.unit,
        slice.flags,
        slice.arch,
        toolchain,
        tmp_path / "unit",
        marker=lowering.marker,
        candidate=cubins[1],
    )
    assert built.ok and built.same_sass is True, built
    assert len(built.marked_kernels) == 3
    undo(copy, done.undo)
    assert checkout.diff(copy) == ""
