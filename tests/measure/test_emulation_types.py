# ruff: noqa: E501  (kernels and op data as text)
"""16-bit and 8-bit floats, vector accesses, intrinsics, inline PTX and the tensor stand-in; bits against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from astra_integrate.measure import jobs
from tests.measure.own_ops import one_kernel, scalar, tensor, workload

HALVES = [
    ("float16", "__half", "c10::Half", np.float16),
    ("bfloat16", "__nv_bfloat16", "c10::BFloat16", ml_dtypes.bfloat16),
]


def ok(outcomes):
    assert [o.status for o in outcomes.values()] == ["ok", "ok"], {k: o.report for k, o in outcomes.items()}
    assert outcomes["forward"].outputs[0]["out"].tobytes() == outcomes["reverse"].outputs[0]["out"].tobytes()
    return outcomes["forward"].outputs[0]["out"]


@pytest.mark.parametrize(("dtype", "cuda", "host", "kind"), HALVES)
def test_half_arithmetic_rounds_once(run_op, dtype, cuda, host, kind):
    work = workload(tensor("out", "out", 4096, dtype=dtype), tensor("input", "in", 4096, dtype=dtype))
    text = f"""
__global__ void k({cuda}* out, const {cuda}* in) {{
  int i = blockIdx.x * 256 + threadIdx.x;
  out[i] = __hadd(__hmul(in[i], in[i]), in[i]);
}}
void own(torch::Tensor& out, const torch::Tensor& input) {{
  k<<<16, 256>>>(reinterpret_cast<{cuda}*>(out.data_ptr<{host}>()), reinterpret_cast<const {cuda}*>(input.data_ptr<{host}>()));
}}"""
    x = jobs.inputs(work, 0)["input"].astype(np.float32)
    square = (x * x).astype(kind).astype(np.float32)
    assert ok(run_op(text, work)).tobytes() == (square + x).astype(kind).tobytes()


@pytest.mark.parametrize(("dtype", "cuda", "host", "kind"), HALVES)
def test_128_bit_loads_of_packed_halves(run_op, dtype, cuda, host, kind):
    work = workload(tensor("out", "out", 512, dtype=dtype), tensor("input", "in", 512, dtype=dtype))
    text = f"""
__global__ void k({cuda}* out, const {cuda}* in) {{
  int4 v = __ldg(reinterpret_cast<const int4*>(in) + threadIdx.x);
  {cuda}2* p = reinterpret_cast<{cuda}2*>(&v);
  for (int j = 0; j < 4; ++j) p[j] = __hmul2(p[j], p[j]);
  reinterpret_cast<int4*>(out)[threadIdx.x] = v;
}}
void own(torch::Tensor& out, const torch::Tensor& input) {{
  k<<<1, 64>>>(reinterpret_cast<{cuda}*>(out.data_ptr()), reinterpret_cast<const {cuda}*>(input.data_ptr()));
}}"""
    x = jobs.inputs(work, 0)["input"].astype(np.float32)
    assert ok(run_op(text, work)).tobytes() == (x * x).astype(kind).tobytes()


def test_fp8_saturates(run_op):
    work = workload(tensor("out", "out", 64, dtype="float8_e4m3fn"), tensor("input", "in", 64, values="normal(400)"))
    text = """
__global__ void k(uint8_t* out, const float* in) {
  out[threadIdx.x] = __nv_cvt_float_to_fp8(in[threadIdx.x], __NV_SATFINITE, __NV_E4M3);
}
void own(torch::Tensor& out, const torch::Tensor& input) {
  k<<<1, 64>>>(reinterpret_cast<uint8_t*>(out.data_ptr()), input.data_ptr<float>());
}"""
    x = np.clip(jobs.inputs(work, 0)["input"], -448, 448)
    assert ok(run_op(text, work)).tobytes() == x.astype(ml_dtypes.float8_e4m3fn).tobytes()


def test_approximate_intrinsics_stay_within_their_bounds(run_op):
    work = workload(tensor("out", "out", 3, 256), tensor("input", "in", 256, values="uniform(0.1,20)"))
    text = one_kernel(
        """
  int i = threadIdx.x;
  out[i] = __expf(in[i]); out[n + i] = __fdividef(1.f, in[i]); out[2 * n + i] = rsqrtf(in[i]);""",
        "1, 256",
    )
    x = jobs.inputs(work, 0)["input"].astype(np.float64)
    got = ok(run_op(text, work)).astype(np.float64)
    wanted = np.stack((np.exp(x), 1 / x, 1 / np.sqrt(x)))
    # CUDA programming guide: __expf 2 + floor(|1.173 x|) ulp, __fdividef 2 ulp, rsqrtf 2 ulp.
    bound = np.stack((2 + np.floor(1.173 * x), np.full_like(x, 2), np.full_like(x, 2))) * 2.0**-23
    assert (np.abs(got - wanted) / wanted <= bound).all()
    assert (got[0] != np.exp(x).astype(np.float32)).any()


def test_fdividef_gives_zero_for_huge_divisors(run_op):
    work = workload(tensor("out", "out", 32), tensor("input", "in", 32))
    assert not ok(run_op(one_kernel("out[threadIdx.x] = __fdividef(in[threadIdx.x], 2e38f);"), work)).any()


def test_inline_ptx_of_the_usual_kind(run_op):
    work = workload(tensor("out", "out", 128), tensor("input", "in", 128))
    text = one_kernel(
        r"""
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0,%1,%2,%3}, [%4];\n" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(in + 4 * threadIdx.x));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(v.x) : "f"(v.x));
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0; @p st.global.v4.f32 [%5], {%0,%1,%2,%3}; }"
               :: "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(1), "l"(out + 4 * threadIdx.x) : "memory");"""
    )
    wanted = jobs.inputs(work, 0)["input"].copy()
    wanted[::4] = np.exp2(wanted[::4])
    assert np.allclose(ok(run_op(text, work)), wanted, rtol=1e-6)


def test_unknown_ptx_counts_only_where_it_runs(run_op):
    work = workload(tensor("out", "out", 32), tensor("input", "in", 32))
    body = 'if ({}) {{ asm volatile("wgmma.fence.sync.aligned;"); }} out[threadIdx.x] = 1;'
    assert (ok(run_op(one_kernel(body.format("n < 0")), work)) == 1).all()
    reached = run_op(one_kernel(body.format("n > 0")), work)["forward"]
    assert reached.status == "lacks"
    assert "wgmma.fence" in reached.report


def test_asynchronous_copies_through_shared_addresses(run_op):
    work = workload(tensor("out", "out", 128), tensor("input", "in", 128))
    text = one_kernel(
        r"""
  __shared__ __align__(16) float s[128];
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[4 * threadIdx.x]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" :: "r"(to), "l"(in + 4 * threadIdx.x));
  asm volatile("cp.async.wait_all;"); __syncthreads();
  for (int j = 0; j < 4; ++j) out[32 * j + threadIdx.x] = s[32 * j + threadIdx.x];"""
    )
    assert np.array_equal(ok(run_op(text, work)), jobs.inputs(work, 0)["input"])


def test_strided_tensor_scalars_and_optional_arguments(run_op):
    work = workload(
        tensor("out", "out", 4, 8),
        tensor("input", "in", 4, 8, strides=(20, 1)),
        tensor("bias", "in", 8),
        scalar("scale", 0.5),
        scalar("times", 3),
        scalar("flag", True),
        scalar("mode", "double"),
        scalar("absent", None),
    )
    text = """
__global__ void k(float* out, const float* in, const float* bias, int64_t stride, float scale) {
  out[blockIdx.x * 8 + threadIdx.x] = in[blockIdx.x * stride + threadIdx.x] * scale + bias[threadIdx.x];
}
void own(torch::Tensor& out, const torch::Tensor& input, std::optional<torch::Tensor> bias, double scale, int64_t times,
         bool flag, const std::string& mode, const std::optional<torch::Tensor>& absent) {
  TORCH_CHECK(bias.has_value() && !absent.has_value() && flag && mode == "double", "arguments got lost");
  TORCH_CHECK(input.stride(0) == 20 && !input.is_contiguous() && input.size(-1) == 8);
  k<<<input.size(0), 8>>>(out.data_ptr<float>(), input.data_ptr<float>(), bias->data_ptr<float>(), input.stride(0), scale * times);
}"""
    given = jobs.inputs(work, 0)
    assert np.array_equal(ok(run_op(text, work)), given["input"] * np.float32(1.5) + given["bias"])


def test_returned_tensor(run_op):
    work = workload(tensor("input", "in", 32), tensor("out", "out", 32))
    text = """
__global__ void k(float* out, const float* in) { out[threadIdx.x] = -in[threadIdx.x]; }
torch::Tensor own(const torch::Tensor& input) {
  auto result = torch::empty({input.size(0)}, input.options());
  k<<<1, 32>>>(result.data_ptr<float>(), input.data_ptr<float>());
  return result;
}"""
    assert np.array_equal(ok(run_op(text, work)), -jobs.inputs(work, 0)["input"])
