"""Replies as language models give them: the usable part is taken, everything else is named, nothing raises."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from astra_integrate.agents.answers import LONGEST, read_answer
from astra_integrate.agents.asking import structured
from astra_integrate.agents.blocks import blocks, chunks
from astra_integrate.agents.loop import candidate_of
from astra_integrate.agents.messages import CodingOutput, PlanningOutput
from astra_integrate.records import Slice

KERNEL = """\
__global__ void scale_rows(const float* in, float* out, float gain, int width) {
  const long long base = static_cast<long long>(blockIdx.x) * width;
  for (int c = threadIdx.x; c < width; c += blockDim.x) out[base + c] = in[base + c] * gain;
}"""
FASTER = KERNEL.replace("out[base + c] = in[base + c] * gain", "out[base + c] = times(in[base + c], gain)")
HELPER = "__device__ float times(float a, float b) { return a * b; }"


def fenced(*texts: str, label: str = "cuda") -> str:
    return "\n".join(f"```{label}\n{text}\n```" for text in texts)


@pytest.fixture
def slice_(sliced: Callable[..., Slice]) -> Slice:
    return sliced("#define WIDTH 4", HELPER.replace("times", "other"), KERNEL)


def only(output: CodingOutput) -> str:
    assert output.rejected == ""
    (replacement,) = output.replaced
    assert replacement.declaration == "2:scale_rows"
    return replacement.text


def test_the_block_that_defines_the_kernel_is_taken_with_its_new_helper(slice_: Slice) -> None:
    output = read_answer(f"I use a helper.\n{fenced(HELPER + chr(10) + FASTER)}\nDone.", slice_)
    assert only(output) == FASTER
    assert [(a.anchor, a.name, a.text) for a in output.added] == [("2:scale_rows", "times", HELPER)]
    assert output.reasoning.startswith("I use a helper.")


def test_neither_the_first_nor_the_last_block_is_taken_by_its_place(slice_: Slice) -> None:
    quoted = "for (int c = threadIdx.x; c < width; c += blockDim.x) out[base + c] = in[base + c] * gain;"
    with_fence = FASTER.replace("{\n", "{\n  // note: ``` inside a comment must not end the block\n", 1)
    usage = fenced("lib.scale(x)", label="python")
    reply = f"The slow part:\n{fenced(quoted)}\nReplacement:\n{fenced(with_fence)}\n{usage}"
    assert only(read_answer(reply, slice_)) == with_fence


def test_namespaces_around_the_declarations_are_looked_through(slice_: Slice) -> None:
    assert only(read_answer(fenced(f"namespace a::b {{\n{FASTER}\n}}  // namespace"), slice_)) == FASTER


def test_includes_that_every_unit_has_are_harmless(slice_: Slice) -> None:
    assert only(read_answer(fenced(f"#include <cuda_runtime.h>\n{FASTER}"), slice_)) == FASTER


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "the reply is empty"),
        (
            "I would read four at a time:\n\n__global__ void scale_rows(const float* in)\n\nand loop.",
            "no code in reply",
        ),
        ("I'm sorry, but I can't help with that.", "the model refused: I'm sorry"),
        (fenced(FASTER, KERNEL.replace("gain;", "gain + 0;")), "2 blocks define scale_rows: give one block"),
        (
            fenced(FASTER.replace("scale_rows", "scale_rows_fast")),
            "entry point missing: scale_rows; scale_rows_fast is there",
        ),
        (
            fenced(
                FASTER.replace("scale_rows", "rows_scale").replace("float gain, int width", "int width, float gain")
            ),
            "rows_scale is there instead with (const float*in, float*out, int width, float gain) in place of",
        ),
        (fenced("__global__ void other_one(int* p) { *p = 0; }"), "entry point missing: scale_rows"),
        (fenced(FASTER)[:-40], "the reply is truncated"),
        (f"```cuda\n{FASTER}", "its code block is not closed"),
        (
            fenced(FASTER.replace("float gain, int width", "int width, float gain")),
            "the parameters of scale_rows changed",
        ),
        (fenced(KERNEL), "the reply changes nothing"),
        (fenced("@@ -1,2 +1,2 @@\n-a\n+b", label="diff"), "the reply is a diff"),
        (fenced(f"#include <fast_rows.h>\n{FASTER}"), "includes <fast_rows.h>, which the slice does not"),
        (fenced(f"#pragma GCC optimize\n{FASTER}"), "a directive that is not allowed: #pragma GCC optimize"),
        (fenced(f"{FASTER}\nvoid run(float* x) {{ scale_rows<<<1, 1>>>(x, x, 1.0f, 1); }}"), "run launches a kernel"),
        (fenced(f"{FASTER}\nvoid run(float* x) {{ x[0] = 1; }}"), "run is a host function"),
        ("x" * (LONGEST + 1), "the reply is too long"),
    ],
)
def test_what_cannot_be_used_is_rejected_with_the_exact_reason(slice_: Slice, reply: str, why: str) -> None:
    output = read_answer(reply, slice_)
    assert why in output.rejected
    assert output.replaced == ()


def test_of_overloads_the_one_with_the_same_head_is_replaced(sliced: Callable[..., Slice]) -> None:
    first, second = "__device__ int f(int a) { return a; }", "__device__ int f(int a, int b) { return a + b; }"
    slice = sliced(first, second)
    output = read_answer(fenced(second.replace("a + b", "b + a")), slice)
    assert [replacement.declaration for replacement in output.replaced] == ["1:f"]
    assert "2 overloads" in read_answer(fenced("__device__ int f(long a) { return 1; }"), slice).rejected


def test_an_answer_keeps_what_the_best_so_far_changed(slice_: Slice) -> None:
    first = read_answer(fenced(HELPER + "\n" + FASTER), slice_)
    best = candidate_of(slice_, PlanningOutput(strategy="s", reason="r"), first, "a", None)
    second = read_answer(fenced(HELPER.replace("a * b", "b * a").replace("times", "other")), slice_, best)
    assert {replacement.declaration for replacement in second.replaced} == {"1:other", "2:scale_rows"}
    assert [addition.name for addition in second.added] == ["times"]


def test_a_record_is_read_out_of_words_and_fences() -> None:
    plan, why = structured('Sure!\n```json\n{"strategy": "x", "reason": "y", "more": 1}\n```\n', PlanningOutput)
    assert plan == PlanningOutput(strategy="x", reason="y")
    assert why == ""
    assert structured('{"strategy": "x"}', PlanningOutput)[1].startswith(
        "the JSON object in the reply is wrong at reason"
    )
    assert structured("no", PlanningOutput)[1] == "no JSON object in the reply"


PIECES = [
    *(
        "```",
        "```cuda\n",
        "\n```\n",
        "~~~",
        "{",
        "}",
        "(",
        ")",
        ";",
        "<",
        ">",
        '"',
        "'",
        "\\",
        "\n",
        "#",
        "//",
        "/*",
        "*/",
    ),
    *(
        "#include <x>\n",
        "#define A(x) \\\n",
        "template <",
        "namespace a {",
        "__global__ void scale_rows(",
        'R"(',
        "<<<",
    ),
    *(
        KERNEL,
        FASTER,
        HELPER,
        "scale_rows",
        '{"replaced": [',
        '{"strategy":',
        "I'm sorry",
        "@@ -1 +1 @@\n",
        "\0",
        "\ud800",
        "é",
    ),
]


@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=30).map("".join),
        st.tuples(st.integers(0, 400), st.integers(0, 400), st.text(max_size=5)).map(
            lambda cut: fenced(HELPER + "\n" + FASTER)[: cut[0]] + cut[2] + fenced(FASTER)[cut[1] :]
        ),
    )
)
def test_malformed_replies_never_raise(slice_: Slice, reply: str) -> None:
    output = read_answer(reply, slice_)
    assert bool(output.rejected) != bool(output.replaced or output.added)
    for kind in (PlanningOutput, CodingOutput):
        structured(reply, kind)


def test_deep_nesting_and_long_lines_are_read_in_time() -> None:
    chunks("{" * 20_000)
    chunks("template <" * 5_000)
    blocks("`" * 100_000)
    structured('{"a":' * 20_000, PlanningOutput)
    text = "".join(random.Random(1).choice("{}();#\n <>") for _ in range(20_000))
    chunks(text)
