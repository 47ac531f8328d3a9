"""What the pass makes of a loop, as before and after; and the reasons why it leaves others alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from astra_integrate.agents.models.rules.findings import Proposal
from astra_integrate.agents.models.rules.reading import Reading
from astra_integrate.agents.models.rules.vectorise import vectorise
from astra_integrate.records import LaunchStep, Replacement, Slice

Make = Callable[..., Slice]
Reader = Callable[[Slice], Reading]
Compiles = Callable[[Slice, tuple[Replacement, ...]], str]
Outputs = Callable[[Slice, tuple[Replacement, ...], str], str]

BEFORE = """\
template <typename T>
__global__ void scale_rows(T* __restrict__ out, const T* __restrict__ in,
                           const int n, const float gain) {
  const int64_t row = blockIdx.x;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const T x = __ldg(&in[row * n + i]);
    // the gain is a float, whatever T is
    out[row * n + i] = (T)((float)x * gain);
  }
}"""

AFTER = """\
template <typename T>
__global__ void scale_rows(T* __restrict__ out, const T* __restrict__ in,
                           const int n, const float gain) {
  const int64_t row = blockIdx.x;
  // kVecSize neighbouring elements, moved by one instruction.
  constexpr int kVecSize = 16 / sizeof(T);
  struct alignas(16) vec_t {
    T val[kVecSize];
  };

  const T* x_start = in + row * n;
  T* out_start = out + row * n;
  // A pack must start on a multiple of its size; where one wouldn't, the scalar
  // loop does it all.
  const bool aligned =
      reinterpret_cast<uintptr_t>(x_start) % sizeof(vec_t) == 0 &&
      reinterpret_cast<uintptr_t>(out_start) % sizeof(vec_t) == 0;
  const int64_t num_vecs = aligned ? n / kVecSize : 0;
  for (int64_t vec = threadIdx.x; vec < num_vecs; vec += blockDim.x) {
    const vec_t x_vec = reinterpret_cast<const vec_t*>(x_start)[vec];
    vec_t out_vec;
#pragma unroll
    for (int lane = 0; lane < kVecSize; ++lane) {
      const T x = x_vec.val[lane];
      // the gain is a float, whatever T is
      out_vec.val[lane] = (T)((float)x * gain);
    }
    reinterpret_cast<vec_t*>(out_start)[vec] = out_vec;
  }
  // What is left: less than one pack, or all of it.
  for (int64_t i = num_vecs * kVecSize + threadIdx.x; i < n; i += blockDim.x) {
    const T x = __ldg(&in[row * n + i]);
    // the gain is a float, whatever T is
    out[row * n + i] = (T)((float)x * gain);
  }
}"""


def kernel(body: str, parameters: str = "float* __restrict__ out, const float* __restrict__ in, int n") -> str:
    return f"__global__ void k({parameters}) {{\n{body}\n}}"


def loop(body: str) -> str:
    return f"  for (int i = threadIdx.x; i < n; i += blockDim.x) {{\n    {body}\n  }}"


@pytest.fixture
def proposes(sliced: Make, reader: Reader) -> Callable[..., Proposal]:
    def propose(*texts: str, **more: tuple[str, ...]) -> Proposal:
        reading = reader(sliced(*texts, **more))
        assert not reading.errors
        return vectorise(reading)

    return propose


def reasons(proposal: Proposal) -> str:
    assert not proposal.replaced, proposal.replaced[0].text
    return "\n".join(str(finding) for finding in proposal.declined)


def test_a_strided_loop_becomes_a_loop_over_packs_and_a_scalar_one_for_the_rest(
    proposes: Callable[..., Proposal],
) -> None:
    proposal = proposes(BEFORE)
    assert proposal.replaced[0].text == AFTER
    assert proposal.declined == ()


def test_the_kernel_is_launched_with_one_thread_per_pack(proposes: Callable[..., Proposal]) -> None:
    (step,) = proposes(BEFORE).plan.variants[0].steps
    assert isinstance(step, LaunchStep)
    assert step.kernel == "scale_rows"
    # As deployed where n isn't whole packs: then every row may have to go one element at a time.
    assert step.block == (
        "min(block_x, max(32, ceil_div(ceil_div(n, 16 / sizeof(T)), 32) * 32) + n % (16 / sizeof(T)) * block_x)"
    )


def test_nvcc_makes_one_instruction_of_a_pack(sliced: Make, reader: Reader, compiles: Compiles) -> None:
    slice = sliced(BEFORE, instantiations=("scale_rows<__nv_bfloat16>", "scale_rows<float>"))
    before = compiles(slice, ())
    after = compiles(slice, vectorise(reader(slice)).replaced)
    loads, stores = r"ld\.global(?:\.nc)?\.v4", r"st\.global\.v4"
    assert not re.search(loads, before)
    assert not re.search(stores, before)
    assert len(re.findall(loads, after)) == len(re.findall(stores, after)) == 2


def test_outputs_are_equal_for_every_length_and_alignment(sliced: Make, reader: Reader, outputs: Outputs) -> None:
    main = """
    int main() {
      for (int n : {0, 1, 3, 4, 5, 8, 31, 64, 67})
        for (int offset : {0, 1, 2, 4})
          for (bool reverse : {false, true}) {
            std::vector<float> in(3 * 67 + 8), out(3 * 67 + 8, -1.0f);
            for (size_t i = 0; i < in.size(); ++i) in[i] = float(i) * 0.25f;
            run(3, 32, reverse, [&] { scale_rows(out.data() + offset, in.data() + offset, n, 3.0f); });
            for (float x : out) printf("%g ", x);
            puts("");
          }
    }"""
    slice = sliced(BEFORE)
    replaced = vectorise(reader(slice)).replaced
    assert outputs(slice, replaced, main) == outputs(slice, (), main)


def test_each_loop_of_a_reduction_is_widened_and_the_new_order_is_told(
    proposes: Callable[..., Proposal], sliced: Make, compiles: Compiles
) -> None:
    text = """\
__global__ void normalise(float* __restrict__ x, const float* __restrict__ weight, const int n) {
  __shared__ float total;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float v = x[blockIdx.x * n + i];
    sum += v * v;
  }
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  atomicAdd(&total, sum);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    x[blockIdx.x * n + i] *= rsqrtf(total / n) * weight[i];
  }
}"""
    proposal = proposes(text)
    assert proposal.declined == ()
    new = proposal.replaced[0].text
    assert new.count("struct alignas(16) vec_t") == 1
    assert new.count("for (int vec = threadIdx.x; vec < num_vecs; vec += blockDim.x)") == 2
    assert "vec_t x_vec = reinterpret_cast<const vec_t*>(x_start)[vec];" in new
    assert "x_vec.val[lane] *= rsqrtf(total / n) * weight_vec.val[lane];" in new
    assert "each thread adds up sum over other elements, in another order" in proposal.reasoning
    assert isinstance(proposal.plan.variants[0].steps[0], LaunchStep)
    compiles(sliced(text), proposal.replaced)


def test_an_index_that_is_needed_elsewhere_is_there_for_every_lane(
    proposes: Callable[..., Proposal], sliced: Make, outputs: Outputs
) -> None:
    text = kernel(loop("const int at = blockIdx.x * n + i; out[at] = in[at] + (i < n / 2 ? 1.0f : 2.0f);"))
    proposal = proposes(text)
    new = proposal.replaced[0].text
    assert "const int i = vec * kVecSize + lane;" in new
    assert "const float* in_start = in + blockIdx.x * n;" in new
    main = """
    int main() {
      std::vector<float> in(40, 1.0f), out(40);
      run(2, 8, false, [&] { k(out.data(), in.data(), 20); });
      for (float x : out) printf("%g ", x);
    }"""
    assert outputs(sliced(text), proposal.replaced, main) == outputs(sliced(text), (), main)


def test_a_grid_strided_loop_is_widened_too(proposes: Callable[..., Proposal], sliced: Make, outputs: Outputs) -> None:
    text = kernel(
        "  const int first = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  for (int i = first; i < n; i += blockDim.x * gridDim.x)\n    out[i] = in[i] * 2.0f;"
    )
    proposal = proposes(text)
    assert "for (int vec = first; vec < num_vecs; vec += blockDim.x * gridDim.x)" in proposal.replaced[0].text
    assert "keeps the deployed block size" in proposal.reasoning
    main = """
    int main() {
      for (int n : {0, 5, 1000, 1003}) {
        std::vector<float> in(1003, 1.5f), out(1003);
        run(4, 32, false, [&] { k(out.data(), in.data(), n); });
        for (float x : out) printf("%g ", x);
      }
    }"""
    assert outputs(sliced(text), proposal.replaced, main) == outputs(sliced(text), (), main)


def test_elements_of_two_types_share_one_count(
    proposes: Callable[..., Proposal], sliced: Make, compiles: Compiles, outputs: Outputs
) -> None:
    text = kernel(
        loop("out[blockIdx.x * n + i] = (int8_t)(in[blockIdx.x * n + i] * scale[0]);"),
        "int8_t* __restrict__ out, const float* __restrict__ in, const float* __restrict__ scale, int n",
    )
    proposal = proposes(text)
    assert "constexpr int kVecSize = 16 / (sizeof(int8_t) > sizeof(float) ? sizeof(int8_t) : sizeof(float));" in (
        proposal.replaced[0].text
    )
    compiles(sliced(text), proposal.replaced)
    main = """
    int main() {
      for (int n : {8, 9}) {
        std::vector<float> in(18); std::vector<int8_t> out(18); float scale = 2;
        for (int i = 0; i < 18; ++i) in[i] = i;
        run(2, 4, true, [&] { k(out.data(), in.data(), &scale, n); });
        for (int x : out) printf("%d ", x);
      }
    }"""
    assert outputs(sliced(text), proposal.replaced, main) == outputs(sliced(text), (), main)


def test_a_load_macro_reads_as_the_load_that_it_stands_for(proposes: Callable[..., Proposal]) -> None:
    proposal = proposes("#define LOAD(arg) __ldg(arg)", kernel(loop("out[i] = LOAD(&in[i]) + LOAD(in + n + i);")))
    assert "out_vec.val[lane] = in_vec.val[lane] + in_vec2.val[lane];" in proposal.replaced[0].text


def test_names_of_the_kernel_are_not_taken_twice(
    proposes: Callable[..., Proposal], sliced: Make, compiles: Compiles
) -> None:
    text = kernel("  const int lane = n, vec = n, aligned = n;\n" + loop("out[i] = in[i] + lane + vec + aligned;"))
    proposal = proposes(text)
    assert "for (int lane2 = 0; lane2 < kVecSize; ++lane2)" in proposal.replaced[0].text
    compiles(sliced(text), proposal.replaced)


PACKS = "struct alignas(16) Pack { float v[4]; };"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (loop("out[i] = in[2 * i];"), "in[2 * i] isn't contiguous in i: it goes by 2 * i"),
        (loop("out[i / 4] = in[i];"), "out[i / 4] isn't contiguous in i: it goes by i / 4"),
        (loop("const int j = i % 3; out[i] = in[j];"), "in[j] depends on j, which the loop computes"),
        (loop("if (in[i] > 0.0f) out[i] = in[i];"), "out[i] is accessed only under a condition"),
        (loop("out[i] = n > 3 ? in[i] : 0.0f;"), "in[i] is accessed only under a condition"),
        (loop("if (i == 5) break;\n    out[i] = in[i];"), "the loop is left by break"),
        (loop("out[i] = in[i] + threadIdx.x;"), "the loop's body uses threadIdx"),
        (loop("out[i] = __shfl_sync(~0u, in[i], 0);"), "__shfl_sync makes threads act together"),
        (
            "  const int lane = threadIdx.x % 32;\n" + loop("out[i] = in[i] + lane;"),
            "lane differs from thread to thread",
        ),
        ("  float last = 0.0f;\n" + loop("out[i] = in[i] + last; last = in[i];"), "last carries a value from one"),
        (loop("out[i] = out[i + 1];"), "out is written at one element and used at another"),
        (loop("out[i] = in[i];") + "\n  out[0] = 1.0f;", "out[0] is used outside of the loop too, with no barrier"),
        (loop("atomicAdd(&out[i], in[i]);"), "out[i] has its address handed on"),
        ("  for (int i = threadIdx.x + 1; i < n; i += blockDim.x) out[i] = in[i];", "i starts at threadIdx.x + 1"),
        ("  for (int i = threadIdx.x; i < n; i += 2 * gridDim.x) out[i] = in[i];", "i moves on by 2 * gridDim.x"),
        (
            "  for (int i = threadIdx.x; i <= n; i += blockDim.x) out[i] = in[i];",
            "the loop's condition isn't i < bound",
        ),
        ("  out[threadIdx.x] = in[threadIdx.x];", "no loop in which threads stride over neighbouring elements"),
    ],
)
def test_a_loop_of_another_form_is_left_with_its_reason(proposes: Callable[..., Proposal], text: str, why: str) -> None:
    assert why in reasons(proposes(kernel(text)))


def test_arrays_that_may_overlap_are_left(proposes: Callable[..., Proposal]) -> None:
    text = kernel(loop("out[i] = in[i];"), "float* out, const float* in, int n")
    assert "out and in may overlap: neither is __restrict__" in reasons(proposes(text))


def test_one_array_in_place_needs_no_restrict(proposes: Callable[..., Proposal]) -> None:
    assert proposes(kernel(loop("x[i] = x[i] * 2.0f;"), "float* x, int n")).replaced


@pytest.mark.parametrize(
    ("text", "parameters", "why"),
    [
        (loop("out[i] = in[i];"), "float4* __restrict__ out, const float4* __restrict__ in, int n", "128 bits wide"),
        (
            "  const float4* wide = reinterpret_cast<const float4*>(in);\n" + loop("out[i] = wide[i].x;"),
            "float* __restrict__ out, const float* __restrict__ in, int n",
            "float4: loads are 128 bit wide",
        ),
        (
            "  const Pack* wide = reinterpret_cast<const Pack*>(in);\n" + loop("out[i] = wide[i].v[0];"),
            "float* __restrict__ out, const float* __restrict__ in, int n",
            "Pack: loads are 128 bit wide",
        ),
    ],
)
def test_what_is_wide_already_says_so(proposes: Callable[..., Proposal], text: str, parameters: str, why: str) -> None:
    told = reasons(proposes(PACKS, kernel(text, parameters)))
    assert "already vectorised" in told
    assert why in told


def test_a_block_that_other_code_relies_on_keeps_its_size(proposes: Callable[..., Proposal]) -> None:
    text = kernel("  __shared__ float s[1024];\n  s[threadIdx.x] = 0.0f;\n" + loop("out[i] = in[i];"))
    proposal = proposes(text)
    assert proposal.replaced
    assert proposal.plan.variants[0].steps[0].kind == "deployed"
    assert "threadIdx is used outside of the loops that were changed" in proposal.reasoning
