# ruff: noqa: E501  (kernels and op data as text)
"""What must not pass silently: bounds, alignment, deadlock, hangs, aborts, bad launches, writes to inputs."""

from __future__ import annotations

import pytest

from tests.measure.own_ops import one_kernel, tensor, workload


def io(n, m=None, **more):
    return workload(tensor("out", "out", m or n, **more), tensor("input", "in", n))


def both(outcomes, status):
    assert [o.status for o in outcomes.values()] == [status] * 2, {k: (o.status, o.report) for k, o in outcomes.items()}
    return outcomes["forward"].report, outcomes["reverse"].report


def test_reading_one_element_past_the_end_faults(run_op):
    text = one_kernel("out[threadIdx.x] = in[threadIdx.x + 1];", "1, 1024")
    forward, _ = both(run_op(text, io(1024)), "crash")
    assert "reads out of bounds of 'input': 0 bytes past its end" in forward
    assert "thread (1023,0,0)" in forward


def test_reading_before_the_start_faults(run_op):
    text = one_kernel("out[threadIdx.x] = in[(int)threadIdx.x - 1];", "1, 1024")
    forward, _ = both(run_op(text, io(1024)), "crash")
    assert "'input'" in forward and "before its start" in forward


@pytest.mark.parametrize("n", [37, 64, 1000])
def test_writing_one_element_past_the_end_is_found_for_any_size(run_op, n):
    text = one_kernel(f"for (int i = threadIdx.x; i < {n} + 1; i += 32) out[i] = 1;")
    forward, reverse = both(run_op(text, io(n)), "crash")
    assert "'out'" in forward and "out of bounds" in forward
    assert "'out'" in reverse


def test_misaligned_vector_load_is_named(run_op):
    text = one_kernel("reinterpret_cast<float4*>(out)[threadIdx.x] = *reinterpret_cast<const float4*>(in + 1);", "1, 8")
    forward, _ = both(run_op(text, io(64)), "crash")
    assert "misaligned" in forward and "float4" in forward and "needs 16 bytes" in forward


def test_misaligned_struct_copy_is_found(run_op):
    prologue = "struct __align__(16) Pack { float v[4]; };"
    text = one_kernel(
        "Pack p = reinterpret_cast<const Pack*>(in + 2)[threadIdx.x]; reinterpret_cast<Pack*>(out)[threadIdx.x] = p;",
        "1, 4",
        prologue,
    )
    forward, _ = both(run_op(text, io(64)), "crash")
    assert "misaligned" in forward and "Pack" in forward


def test_misaligned_tensor_breaks_what_assumes_alignment(run_op):
    text = one_kernel(
        "reinterpret_cast<float4*>(out)[threadIdx.x] = reinterpret_cast<const float4*>(in)[threadIdx.x];", "1, 8"
    )
    aligned = workload(tensor("out", "out", 32), tensor("input", "in", 32))
    moved = workload(tensor("out", "out", 32), tensor("input", "in", 32, offset=1))
    both(run_op(text, aligned), "ok")
    assert all("misaligned" in report for report in both(run_op(text, moved), "crash"))


def test_array_index_beyond_its_bounds(run_op):
    text = one_kernel("__shared__ float s[32]; s[threadIdx.x + n] = 1; __syncthreads(); out[threadIdx.x] = s[0];")
    assert "outside of 'float [32]'" in both(run_op(text, io(32)), "crash")[0]


def test_barrier_that_half_the_threads_skip(run_op):
    text = one_kernel("if (threadIdx.x < 16) __syncthreads(); __syncwarp(); out[threadIdx.x] = 1;")
    assert all("divergent barrier" in report for report in both(run_op(text, io(32)), "crash"))


def test_warp_operation_that_a_named_lane_never_reaches(run_op):
    text = one_kernel(
        "float v = 0; if (threadIdx.x < 8) v = __shfl_sync(0xffffu, 1.f, 0); else __syncthreads(); out[threadIdx.x] = v;"
    )
    assert "divergent barrier" in both(run_op(text, io(32)), "crash")[0]


def test_lanes_that_do_not_exist_give_no_value(run_op):
    # A block of 16 threads with a full mask: the upper lanes' values are undefined on the device.
    text = one_kernel(
        "float v = in[threadIdx.x]; v += __shfl_xor_sync(0xffffffffu, v, 16); out[threadIdx.x] = v;", "1, 16"
    )
    outcomes = run_op(text, io(16))
    both(outcomes, "ok")
    assert (outcomes["forward"].outputs[0]["out"] != outcomes["forward"].outputs[0]["out"]).all()


def test_infinite_loop_times_out(run_op):
    text = one_kernel("volatile int stop = 0; while (!stop) {} out[0] = 1;")
    outcomes = run_op(text, io(32), seconds=1.0)
    assert outcomes["forward"].status == "timeout"
    assert outcomes["reverse"].status == "skipped"


def test_spinning_on_a_flag_of_a_later_block_times_out(run_op):
    text = one_kernel(
        "volatile float* flag = out; if (blockIdx.x == 0) while (flag[1] != 1.f) {} else out[1] = 1.f; out[0] = 1;",
        "2, 1",
    )
    assert run_op(text, io(32), seconds=1.0)["forward"].status == "timeout"


def test_abort_and_assert_and_trap(run_op):
    assert "an abort in thread" in both(run_op(one_kernel("if (n) abort(); out[0] = 1;"), io(32)), "crash")[0]
    assert "assertion 'n == 0'" in both(run_op(one_kernel("assert(n == 0); out[0] = 1;"), io(32)), "crash")[0]
    assert "trapped" in both(run_op(one_kernel("if (n) __trap(); out[0] = 1;"), io(32)), "crash")[0]


def test_division_by_zero_in_the_host_function(run_op):
    text = "void own(torch::Tensor& out, const torch::Tensor& input) { volatile int z = 0; z = input.numel() / z; }"
    assert "a division by zero in the host function" in both(run_op(text, io(32)), "crash")[0]


def test_writing_to_an_input_is_stopped_at_once(run_op):
    text = one_kernel("const_cast<float*>(in)[threadIdx.x] = 0; out[threadIdx.x] = 1;")
    assert both(run_op(text, io(32)), "crash")[0].startswith("thread (0,0,0) of block (0,0,0) writes to 'input', which")


def test_writing_between_the_rows_of_a_strided_output(run_op):
    work = workload(tensor("out", "out", 4, 8, strides=(16, 1)), tensor("input", "in", 32))
    text = one_kernel("out[threadIdx.x] = 1;", "1, 49")
    assert "between the rows of the strided tensor 'out'" in both(run_op(text, work), "crash")[0]


@pytest.mark.parametrize(
    ("launch", "why"),
    [("0, 32", "grid with no blocks"), ("1, 0", "block with no threads"), ("1, 2048", "more than 1024")],
)
def test_bad_launches_are_errors_after_the_call(run_op, launch, why):
    report, _ = both(run_op(one_kernel("out[0] = 1;", launch), io(32)), "error")
    assert why in report and "invalid configuration argument" in report


def test_refusal_by_the_host_function(run_op):
    text = 'void own(torch::Tensor& out, const torch::Tensor& input) { TORCH_CHECK(input.dim() == 2, "needs rows, got ", input.dim()); }'
    assert both(run_op(text, io(32)), "refused")[0] == "needs rows, got 1"


def test_too_large_local_arrays_are_told(run_op):
    text = one_kernel("volatile float big[100000]; big[n] = 1; out[threadIdx.x] = big[n];")
    assert "stack" in both(run_op(text, io(32)), "crash")[0]


def test_memory_limit(run_op):
    text = """void own(torch::Tensor& out, const torch::Tensor& input) {
  std::vector<std::unique_ptr<char[]>> kept;
  for (int i = 0; i < 1 << 20; ++i) kept.emplace_back(new char[1 << 30]);
}"""
    assert "bad_alloc" in both(run_op(text, io(32)), "refused")[0]


def test_child_cannot_write_files_and_has_no_environment(run_op, tmp_path):
    path = tmp_path / "left behind"
    text = f"""void own(torch::Tensor& out, const torch::Tensor& input) {{
  TORCH_CHECK(!getenv("HOME") && !getenv("ASTRA_API_KEY"), "the environment came along");
  FILE* f = fopen("{path}", "w"); if (f) {{ fputs("x", f); fclose(f); }}
}}"""
    run_op(text, io(32))
    assert not path.exists() or path.read_text() == ""
