# ruff: noqa: E501  (kernels and op data as text)
"""Candidates that cheat or are subtly wrong: each is rejected, and for the right reason."""

from __future__ import annotations

from typing import Any

import pytest

from astra_integrate.records import Workload
from tests.measure.own_ops import op, scalar, tensor, workload

# The honest op: a gated product over halves, rows of any width, any alignment.
HOST = """
void own(torch::Tensor& out, const torch::Tensor& input) {
  int rows = input.size(0), width = out.size(1);
  if (rows == 0 || width == 0) return;
  gated<<<rows, width < 256 ? width : 256>>>(reinterpret_cast<__half*>(out.data_ptr<c10::Half>()),
      reinterpret_cast<const __half*>(input.data_ptr<c10::Half>()), width);
}"""
KERNEL = """
__global__ void gated(__half* __restrict__ out, const __half* __restrict__ in, const int width) {
  const long long row = blockIdx.x;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float a = __half2float(in[row * 2 * width + c]), b = __half2float(in[row * 2 * width + width + c]);
    out[row * width + c] = __float2half(a / (1.f + expf(-a)) * b);
  }
}"""
HONEST = KERNEL + HOST
ORACLE = "d = size(out, -1); out = silu(input[..., :d]) * input[..., d:]"


def rows(t: int, d: int, role: str = "representative", offset: int = 0, **more: Any) -> Workload:
    return workload(
        tensor("out", "out", t, d, dtype="float16", offset=offset),
        tensor("input", "in", t, 2 * d, dtype="float16", offset=offset, values=more.pop("values", "normal(2)")),
        oracle=ORACLE,
        id=more.pop("id", f"{t}x{d}+{offset}"),
        role=role,
        **more,
    )


WORKLOADS = (
    rows(4, 512),
    rows(7, 256),
    rows(0, 128, "edge"),
    rows(3, 37, "edge"),
    rows(4, 64, "edge", offset=1),
    rows(42, 64, "edge", values="special", id="special"),
)
FAR = rows(74900, 14336, "edge", id="far", tail_rows=2)


def kernel(body: str, prologue: str = "") -> str:
    return (
        f"""{prologue}
__global__ void gated(__half* __restrict__ out, const __half* __restrict__ in, const int width) {{
  const long long row = blockIdx.x;
  auto one = [&](int c) {{
    float a = __half2float(in[row * 2 * width + c]), b = __half2float(in[row * 2 * width + width + c]);
    return __float2half(a / (1.f + expf(-a)) * b);
  }};
  {body}
}}"""
        + HOST
    )


LOOP = "for (int c = threadIdx.x; c < width; c += blockDim.x) out[row * width + c] = one(c);"
VECTOR = (
    """
  if ({guard}) {{
    for (int c = 2 * threadIdx.x; c + 1 < width; c += 2 * blockDim.x)
      *reinterpret_cast<__half2*>(out + row * width + c) = __half2(one(c), one(c + 1));
    {tail}
  }} else {{ """
    + LOOP.replace("{", "{{").replace("}", "}}")
    + " }}"
)
FAST = KERNEL.replace("a / (1.f + expf(-a))", "__fdividef(a, 1.f + __expf(-a))") + HOST
ALIGNED = "width % 2 == 0 && reinterpret_cast<uintptr_t>(out) % 4 == 0"


@pytest.mark.parametrize(
    "candidate",
    [HONEST, FAST, kernel(VECTOR.format(guard=ALIGNED, tail="")), kernel("long long r = row; (void)r; " + LOOP)],
    ids=["unmodified", "fast math", "guarded vectors", "reordered"],
)
def test_honest_candidates_pass(gate, candidate):
    found = gate(op(HONEST, 2), candidate, (*WORKLOADS, FAR))
    assert found.verdict == "correct under emulation", found.detail


WRONG = {
    "writes zeros": (
        kernel("for (int c = threadIdx.x; c < width; c += blockDim.x) out[row * width + c] = __half(0.f);"),
        "wrong",
        "all zeros",
    ),
    "writes nothing": (kernel(""), "wrong", "output not written"),
    "copies the input": (
        kernel("for (int c = threadIdx.x; c < width; c += blockDim.x) out[row * width + c] = in[row * 2 * width + c];"),
        "wrong",
        "wrong at",
    ),
    "skips the shapes of the benchmark": (
        kernel("if (width == 512) return; " + LOOP),
        "wrong",
        "4x512+0, forward: out: output not written",
    ),
    "skips the tail": (
        kernel(VECTOR.format(guard="true", tail="").replace("c + 1 < width", "c + 1 < width / 2 * 2")),
        "crashes",
        "misaligned",
    ),
    "drops odd elements": (
        kernel("for (int c = threadIdx.x; c < width / 2 * 2; c += blockDim.x) out[row * width + c] = one(c);"),
        "wrong",
        "3x37+0, forward: out: output not written at 3 of 111 places (first at [0, 36])",
    ),
    "assumes alignment": (
        kernel(VECTOR.format(guard="width % 2 == 0", tail="")),
        "crashes",
        "4x64+1, forward: misaligned",
    ),
    "reads past the row": (
        kernel("for (int c = threadIdx.x; c < (width + 31) / 32 * 32; c += blockDim.x) out[row * width + c] = one(c);"),
        "crashes",
        "out of bounds of",
    ),
    "writes to its input": (
        kernel(LOOP + " if (threadIdx.x == 0) const_cast<__half*>(in)[row * 2 * width] = __half(0.f);"),
        "wrong",
        "may only read",
    ),
    "keeps the first call's result": (
        kernel(
            """
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    if (calls < (int)gridDim.x) kept[row * width + c] = one(c);
    out[row * width + c] = kept[row * width + c];
  }
  __syncthreads();
  if (threadIdx.x == 0) ++calls;""",
            "__device__ __half kept[1 << 16]; __device__ int calls;",
        ),
        "cheats",
        "output does not follow input",
    ),
    "works once": (
        kernel(
            "if (calls < (int)gridDim.x) { " + LOOP + " } __syncthreads(); if (threadIdx.x == 0) ++calls;",
            "__device__ int calls;",
        ),
        "wrong",
        "output not written",
    ),
    "forgets a barrier": (
        kernel(
            """
  __shared__ __half s[512];
  for (int base = 0; base < width; base += blockDim.x) {
    int c = base + threadIdx.x;
    if (c < width) s[threadIdx.x] = one(c);
    int other = min((int)blockDim.x, width - base) - 1 - (int)threadIdx.x;
    if (c < width) out[row * width + base + other] = s[other];
    __syncthreads();
  }"""
        ),
        "wrong",
        "",
    ),
    "lets NaN become 0": (
        kernel(
            "for (int c = threadIdx.x; c < width; c += blockDim.x) { float v = __half2float(one(c)); out[row * width + c] = __float2half(v == v ? v : 0.f); }"
        ),
        "wrong",
        "special, forward: out: wrong at",
    ),
    "computes in half": (
        kernel(
            """
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    __half a = in[row * 2 * width + c], b = in[row * 2 * width + width + c];
    out[row * width + c] = __hmul(__hmul(a, hrcp(__hadd(__half(1.f), hexp(__hneg(a))))), b);
  }"""
        ),
        "wrong",
        "",
    ),
    "overflows 32 bits": (
        KERNEL.replace("const long long row = blockIdx.x", "const int row = blockIdx.x") + HOST,
        "crashes",
        "far, forward: thread",
    ),
    "waits for ever": (kernel(LOOP + " volatile int stop = 0; while (!stop) {}"), "times out", ""),
    "divergent barrier": (
        kernel("if (threadIdx.x < 8) __syncthreads(); __syncwarp(); " + LOOP),
        "crashes",
        "divergent barrier",
    ),
    "launches an empty grid": (
        HONEST.replace("if (rows == 0 || width == 0) return;", ""),
        "crashes",
        "grid with no blocks",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_candidates_are_rejected_for_the_right_reason(gate, name):
    candidate, verdict, reason = WRONG[name]
    workloads = (*WORKLOADS, FAR) if "overflows" in name else WORKLOADS
    found = gate(op(HONEST, 2), candidate, workloads)
    assert found.verdict == verdict, found.detail
    assert reason in found.detail


def test_rows_beyond_32_bits_are_not_claimed_where_the_last_rows_cannot_be_run_alone(gate):
    strided = KERNEL.replace(
        "const long long row = blockIdx.x;", "for (long long row = blockIdx.x; row < rows; row += gridDim.x)"
    ).replace("const int width)", "const int width, const int rows)")
    host = HOST.replace("gated<<<rows,", "gated<<<rows < 132 ? rows : 132,").replace("width);\n}", "width, rows);\n}")
    found = gate(op(HONEST, 2), strided + host, (*WORKLOADS, FAR))
    assert found.verdict == "correct under emulation", found.detail
    assert "not run (far: the launch has fewer blocks than rows" in found.detail


# Joining two attention states: (value, log-sum-exp) pairs; both empty must stay empty.
JOIN = """
__global__ void join(const float* va, const float* la, const float* vb, const float* lb, float* v, float* l, int dim) {{
  long long th = blockIdx.x;
  for (int d = threadIdx.x; d < dim; d += blockDim.x) {{
    float a = la[th], b = lb[th], top = fmaxf(a, b);
    {empty}
    float wa = {exp}(a - top), wb = {exp}(b - top);
    v[th * dim + d] = (va[th * dim + d] * wa + vb[th * dim + d] * wb) / (wa + wb);
    if (d == 0) l[th] = {log}(wa + wb) + top;
  }}
}}
void own(torch::Tensor& v, torch::Tensor& l, const torch::Tensor& va, const torch::Tensor& la, const torch::Tensor& vb, const torch::Tensor& lb) {{
  join<<<v.size(0), 64>>>(va.data_ptr<float>(), la.data_ptr<float>(), vb.data_ptr<float>(), lb.data_ptr<float>(), v.data_ptr<float>(), l.data_ptr<float>(), v.size(1));
}}"""
GUARD = "if (top == -INFINITY) { v[th * dim + d] = 0.f; if (d == 0) l[th] = top; continue; }"


def states(lse: str, role: str) -> Workload:
    values, sums = ("va", "vb"), ("la", "lb")
    given = [
        t for v, s in zip(values, sums, strict=True) for t in (tensor(v, "in", 20, 96), tensor(s, "in", 20, values=lse))
    ]
    oracle = """m = maximum(la, lb); n = isinf(m); a = exp(la - m); b = exp(lb - m); l = where(n, m, log(a + b) + m)
v = where(widen(n), 0.0, (va * widen(a) + vb * widen(b)) / widen(a + b))"""
    return workload(
        tensor("v", "out", 20, 96), tensor("l", "out", 20), *given, oracle=oracle, id=f"{role} {lse}", role=role
    )


def test_identity_of_the_join_is_kept(gate):
    honest = op(JOIN.format(empty=GUARD, exp="expf", log="logf"), 6)
    works = (states("normal(3)", "representative"), states("constant(-inf)", "edge"))
    assert (
        gate(honest, JOIN.format(empty=GUARD, exp="__expf", log="__logf"), works).verdict == "correct under emulation"
    )
    found = gate(honest, JOIN.format(empty="", exp="expf", log="logf"), works)
    assert found.verdict == "wrong"
    assert found.detail.startswith("edge constant(-inf), forward: v:")


# Rows copied into the slots of a cache with its own pitch: aligned sources may go to unaligned slots.
PLACE = """
__global__ void place(__half* dst, const __half* src, const int* slot, int width, int pitch) {{
  const __half* s = src + (long long)blockIdx.x * width;
  __half* d = dst + (long long)slot[blockIdx.x] * pitch;
  const bool wide = {wide};
  const int packs = wide ? width / 8 : 0;
  for (int p = threadIdx.x; p < packs; p += blockDim.x) reinterpret_cast<int4*>(d)[p] = reinterpret_cast<const int4*>(s)[p];
  for (int c = packs * 8 + threadIdx.x; c < width; c += blockDim.x) d[c] = s[c];
}}
void own(torch::Tensor& dst, const torch::Tensor& src, const torch::Tensor& slot) {{
  if (src.size(0)) place<<<src.size(0), 32>>>(reinterpret_cast<__half*>(dst.data_ptr()), reinterpret_cast<const __half*>(src.data_ptr()),
      slot.data_ptr<int>(), src.size(1), dst.stride(0));
}}"""


def place(width: int, role: str, offset: int = 0) -> Workload:
    return workload(
        tensor("dst", "inout", 3, width, dtype="float16"),
        tensor("src", "in", 3, width, dtype="float16", offset=offset),
        tensor("slot", "in", 3, dtype="int32", values="permutation"),
        id=f"{width}+{offset}",
        role=role,
    )


def test_vectors_need_both_sides_aligned(gate):
    scalar_op = op(PLACE.format(wide="false"), 3)
    works = (place(64, "representative"), place(64, "edge", offset=1), place(50, "edge"))
    both = "((uintptr_t)s | (uintptr_t)d) % 16 == 0"
    assert gate(scalar_op, PLACE.format(wide=both), works).verdict == "correct under emulation"
    found = gate(scalar_op, PLACE.format(wide="(uintptr_t)s % 16 == 0"), works)
    assert found.verdict == "crashes"
    assert found.detail.startswith("50+0, forward: misaligned")


def test_sum_in_reduced_precision(gate):
    text = """
__global__ void norm(float* out, const float* in, int width, float eps) {{
  __shared__ {type} part[256];
  {type} sum = 0.f;
  for (int c = threadIdx.x; c < width; c += blockDim.x) sum = sum + {type}(in[blockIdx.x * width + c] * in[blockIdx.x * width + c]);
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int d = 128; d; d /= 2) {{ if (threadIdx.x < d) part[threadIdx.x] = part[threadIdx.x] + part[threadIdx.x + d]; __syncthreads(); }}
  float scale = rsqrtf((float)part[0] / width + eps);
  for (int c = threadIdx.x; c < width; c += blockDim.x) out[blockIdx.x * width + c] = in[blockIdx.x * width + c] * scale;
}}
void own(torch::Tensor& out, const torch::Tensor& input, double eps) {{
  norm<<<input.size(0), 256>>>(out.data_ptr<float>(), input.data_ptr<float>(), input.size(1), eps);
}}"""
    work = workload(
        tensor("out", "out", 5, 1024),
        tensor("input", "in", 5, 1024),
        scalar("eps", 1e-6),
        oracle="out = input * rsqrt(mean(input * input) + eps)",
    )
    assert (
        gate(op(text.format(type="float"), 3), text.format(type="float"), (work,)).verdict == "correct under emulation"
    )
    assert gate(op(text.format(type="float"), 3), text.format(type="c10::BFloat16"), (work,)).verdict == "wrong"
