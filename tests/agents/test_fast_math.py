"""Which divisions and functions are replaced, and which are left because their type isn't float for certain."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from astra_integrate.agents.models.rules.fast_math import fast_math
from astra_integrate.agents.models.rules.findings import Proposal
from astra_integrate.agents.models.rules.reading import Reading
from astra_integrate.records import Replacement, Slice


@pytest.fixture
def proposes(sliced: Callable[..., Slice], reader: Callable[[Slice], Reading]) -> Callable[[str], Proposal]:
    return lambda text: fast_math(reader(sliced(text)))


def kernel(statement: str) -> str:
    return f"__global__ void k(float* x, double* d, __half* h, int n) {{ {statement} }}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x[0] = x[1] / (1.0f + expf(-x[2]));", "x[0] = __fdividef(x[1], 1.0f + __expf(-x[2]));"),
        ("x[0] = x[1] / x[2] / x[3];", "x[0] = __fdividef(__fdividef(x[1], x[2]), x[3]);"),
        ("x[0] = x[1] / (x[2] / n);", "x[0] = __fdividef(x[1], __fdividef(x[2], n));"),
        ("x[0] = std::exp(x[1]) + logf(x[2] / 3.0f);", "x[0] = __expf(x[1]) + __logf(__fdividef(x[2], 3.0f));"),
        ("x[0] = powf(x[1], 2.5f) * sinf((float)h[0]);", "x[0] = __powf(x[1], 2.5f) * __sinf((float)h[0]);"),
    ],
)
def test_float_sites_are_replaced(proposes: Callable[[str], Proposal], before: str, after: str) -> None:
    assert proposes(kernel(before)).replaced[0].text == kernel(after)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (kernel("d[0] = exp(d[1]);"), "the type of exp(d[1]) is double"),
        (
            "template <typename T> __global__ void k(T* x) { x[0] = x[1] / x[2]; }",
            "the type of x[1] / x[2] depends on the template's",
        ),
        (
            "template <typename T> __global__ void k(T* x) { x[0] = expf(x[1]); }",
            "the type of expf(x[1]) depends on the template's",
        ),
        (
            kernel("n = n / 3; d[0] = d[1] / 3; x[0] = x[1] / 4.0f;"),
            "no float division and no function with a fast form",
        ),
    ],
)
def test_other_types_are_left_with_the_reason(proposes: Callable[[str], Proposal], text: str, why: str) -> None:
    proposal = proposes(text)
    assert proposal.replaced == ()
    assert why in "\n".join(str(finding) for finding in proposal.declined)


def test_a_cast_makes_a_template_s_type_certain(proposes: Callable[[str], Proposal]) -> None:
    before = "template <typename T> __device__ T f(T x) { return (T)((float)x / (1.0f + expf(-(float)x))); }"
    proposal = proposes(before + " __global__ void k(float* x) { x[0] = f(x[0]); }")
    assert "(T)(__fdividef((float)x, 1.0f + __expf(-(float)x)))" in proposal.replaced[0].text
    assert proposal.changes == ("f: / → __fdividef, expf → __expf",)


def test_the_result_compiles_and_has_no_slow_division(
    sliced: Callable[..., Slice],
    reader: Callable[[Slice], Reading],
    compiles: Callable[[Slice, tuple[Replacement, ...]], str],
) -> None:
    slice = sliced(kernel("x[0] = x[1] / (1.0f + expf(-x[2]));"))
    before, after = compiles(slice, ()), compiles(slice, fast_math(reader(slice)).replaced)
    assert "div.rn.f32" in before
    assert "div.approx.f32" in after
