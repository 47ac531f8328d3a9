"""The execution model, bit-exact against numpy: barriers, warp operations, shared memory, atomics, both orders."""

from __future__ import annotations

import numpy as np

from astra_integrate.measure import jobs
from tests.measure.own_ops import one_kernel, tensor, workload


def io(n: int, m: int | None = None):
    return workload(tensor("out", "out", m or n), tensor("input", "in", n))


def given(work, run=0):
    return jobs.inputs(work, run)["input"]


def both(outcomes, run=0):
    assert [o.status for o in outcomes.values()] == ["ok", "ok"], {k: o.report for k, o in outcomes.items()}
    forward, reverse = (outcomes[order].outputs[run]["out"] for order in ("forward", "reverse"))
    return forward, reverse


def test_elementwise_over_blocks(run_op):
    work = io(1000)
    text = one_kernel("int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = in[i] * 2.f;", "8, 128")
    for run in (0, 1):
        for got in both(run_op(text, work), run):
            assert got.tobytes() == (given(work, run) * np.float32(2)).tobytes()


def test_block_sum_by_shuffles_and_shared_memory(run_op):
    work = io(256, 1)
    text = one_kernel(
        """
  __shared__ float part[8];
  float v = in[threadIdx.x];
  for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) { float s = 0; for (int w = 0; w < 8; ++w) s += part[w]; *out = s; }""",
        "1, 256",
    )
    values = given(work).reshape(8, 32).copy()
    for d in (16, 8, 4, 2, 1):
        values = values + values[:, np.arange(32) ^ d]
    wanted = np.float32(0)
    for part in values[:, 0]:
        wanted = np.float32(wanted + part)
    for got in both(run_op(text, work)):
        assert got[0] == wanted


def test_missing_barrier_shows_as_a_difference_between_the_orders(run_op):
    body = "__shared__ float s[64]; s[threadIdx.x] = in[threadIdx.x]; {} out[threadIdx.x] = s[63 - threadIdx.x];"
    work = io(64)
    for got in both(run_op(one_kernel(body.format("__syncthreads();"), "1, 64"), work)):
        assert np.array_equal(got, given(work)[::-1])
    forward, reverse = both(run_op(one_kernel(body.format(""), "1, 64"), work))
    assert not np.array_equal(forward, given(work)[::-1])
    assert forward.tobytes() != reverse.tobytes()


def test_shared_memory_starts_as_poison_in_each_block(run_op):
    text = one_kernel(
        "__shared__ float s[32]; out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x]; s[threadIdx.x] = 1;", "2, 32"
    )
    for got in both(run_op(text, io(64))):
        assert np.isnan(got).all()


def test_dynamic_shared_memory_and_its_end(run_op):
    body = """extern __shared__ __align__(16) float s[];
  s[threadIdx.x {}] = in[threadIdx.x]; __syncthreads(); out[threadIdx.x] = s[threadIdx.x ^ 1];"""
    work = io(32)
    for got in both(run_op(one_kernel(body.format(""), "1, 32, 32 * sizeof(float)"), work)):
        assert np.array_equal(got, given(work)[np.arange(32) ^ 1])
    over = run_op(one_kernel(body.format("+ 1"), "1, 32, 32 * sizeof(float)"), work)
    assert {o.status for o in over.values()} == {"crash"}
    assert "dynamic shared memory" in over["forward"].report


def test_too_much_dynamic_shared_memory_is_an_error_unless_opted_in(run_op):
    text = one_kernel("extern __shared__ float s[]; s[0] = in[0]; out[0] = s[0];", "1, 1, 60000")
    refused = run_op(text, io(4))
    assert refused["forward"].status == "error"
    assert "49152 are allowed" in refused["forward"].report
    opted = text.replace(
        "  k<<<", "  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000);\n  k<<<"
    )
    assert both(run_op(opted, io(4)))[0][0] == given(io(4))[0]


def test_ballot_votes_and_match(run_op):
    text = one_kernel(
        """
  unsigned b = __ballot_sync(0xffffffffu, threadIdx.x % 3 == 0);
  int any = __any_sync(0xffffffffu, threadIdx.x == 31), all = __all_sync(0xffffffffu, threadIdx.x < 31);
  unsigned m = __match_any_sync(0xffffffffu, (int)threadIdx.x / 8);
  out[threadIdx.x] = (float)__popc(b) + 100 * any + 1000 * all + 10000 * __popc(m);"""
    )
    for got in both(run_op(text, io(32))):
        assert set(got) == {11 + 100 + 0 + 80000}


def test_warp_operation_of_a_subset_by_its_mask(run_op):
    text = one_kernel(
        """
  float v = 0;
  if (threadIdx.x < 16) v = __shfl_down_sync(0xffffu, (float)threadIdx.x, 1, 16);
  out[threadIdx.x] = v;"""
    )
    wanted = [*range(1, 16), 15, *[0] * 16]
    for got in both(run_op(text, io(32))):
        assert list(got) == wanted


def test_divergent_threads_find_each_other_by_activemask(run_op):
    text = one_kernel("if (threadIdx.x % 2) out[threadIdx.x] = __popc(__activemask()); else out[threadIdx.x] = 0;")
    for got in both(run_op(text, io(32))):
        assert list(got) == [0, 16] * 16


def test_threads_that_returned_do_not_hold_up_a_barrier(run_op):
    text = one_kernel("if (threadIdx.x >= 20) return; out[threadIdx.x] = __syncthreads_count(threadIdx.x < 5);")
    for got in both(run_op(text, io(20))):
        assert set(got) == {5.0}


def test_atomics_over_blocks(run_op):
    text = one_kernel(
        "if (blockIdx.x == 0 && threadIdx.x == 0) {} atomicAdd(reinterpret_cast<int*>(out), 1);", "4, 64"
    ).replace("  k<<<", "  cudaMemsetAsync(out.data_ptr(), 0, 4);\n  k<<<".replace("0, 4)", "0, 4, nullptr)"))
    for got in both(run_op(text, io(4, 1))):
        assert got.view(np.int32)[0] == 256


def test_cub_block_reduce(run_op):
    text = one_kernel(
        """
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float m = Reduce(storage).Reduce(in[threadIdx.x], cub::Max{}, blockDim.x);
  if (threadIdx.x == 0) *out = m;""",
        "1, 96",
    )
    work = io(96, 1)
    for got in both(run_op(text, work)):
        assert got[0] == given(work).max()


def test_cooperative_tiles(run_op):
    text = one_kernel(
        """
  auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
  float v = in[threadIdx.x];
  for (int d = 4; d; d /= 2) v = fmaxf(v, tile.shfl_down(v, d));
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = v;"""
    )
    work = io(32, 4)
    for got in both(run_op(text, work)):
        assert np.array_equal(got, given(work).reshape(4, 8).max(axis=1))
