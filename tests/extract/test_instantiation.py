"""Template arguments: read off the tree, spelled as source, chosen where the source has none."""

from __future__ import annotations

import pytest

from astra_integrate.extract.demangle import demangle, template_id
from astra_integrate.extract.instantiation import Instantiation, choose_arguments, in_order


@pytest.mark.parametrize(
    ("demangled", "name", "spelled"),
    [
        ("void ns::scale<float, 8>(float*, int)", "scale", "ns::scale<float, 8>"),
        ("scale(float*)", "scale", "scale"),
        ("scale", "scale", "scale"),
        (
            "void ns::gate<Half, &(Half ns::act<Half>(Half const&)), true>(Half*, Half const*)",
            "gate",
            "ns::gate<Half, &ns::act<Half>, true>",
        ),
        (
            "void gate<&(float2 ns::pair<float2>(float2 const&, float)), &(float ns::act<float>(float))>(int)",
            "gate",
            "gate<&ns::pair<float2>, &ns::act<float>>",
        ),
        (
            "std::enable_if<((8)>(0))&&ns::has<Half>::exists, void>::type ns::norm<Half, 8>(Half*, long)",
            "norm",
            "ns::norm<Half, 8>",
        ),
        ("void ns::(anonymous namespace)::k<(ns::Kind)1, (int)-4, 128u>(int)", "k", "ns::k<(ns::Kind)1, -4, 128u>"),
        ("void k<std::array<int, 3ul>, void (*)(int)>(int)", "k", "k<std::array<int, 3ul>, void (*)(int)>"),
        ("void other<float>(float*)", "scale", None),
        ("void my_scale<float>(float*)", "scale", None),
        ("void k<op(int)::{lambda(int)#1}>(int)", "k", None),
    ],
)
def test_a_demangled_kernel_becomes_source(demangled: str, name: str, spelled: str | None) -> None:
    assert template_id(demangled, name) == spelled


def test_symbols_are_demangled_and_plain_names_left() -> None:
    assert demangle(["_ZN2ns5scaleIfLi8EEEvPT_", "plain"]) == ("void ns::scale<float, 8>(float*)", "plain")
    assert demangle([]) == ()


def test_bfloat16_comes_first_then_half_then_float() -> None:
    texts = ["k<int>", "k<float>", "k<c10::Half>", "k<__nv_bfloat16, float>", "k<c10::BFloat16>"]
    ordered = in_order(Instantiation(text, None) for text in texts)
    assert [i.text for i in ordered] == [
        "k<__nv_bfloat16, float>",
        "k<c10::BFloat16>",
        "k<c10::Half>",
        "k<float>",
        "k<int>",
    ]


LAUNCHERS = """
#include <cuda_bf16.h>
namespace ns {
template <typename T> __device__ T twice(const T& x) { return x + x; }
template <typename T> __device__ T same(const T& x) { return x; }
template <typename T, T (*F)(const T&), bool kFirst> __global__ void apply(T* p) { p[0] = F(p[0]); }
template <typename T> struct Launcher {
  template <bool kFirst> static constexpr auto chosen = apply<T, twice<T>, kFirst>;
  static void run(T* p) { go<true>(p); }
  template <bool B> static void go(T* p) { auto kernel = chosen<B>; kernel<<<1, 1>>>(p); }
};
}
template <typename T> void launch(T* p, int n) {
  if constexpr (sizeof(T) == 2) ns::apply<T, ns::twice<T>, true><<<n, 32>>>(p);
  else ns::apply<T, ns::same<T>, false><<<n, 32>>>(p);
}
#define DISPATCH(...) [&] { using scalar = float; return __VA_ARGS__(); }()
template <typename T> void unused(T* p) { ns::apply<T, ns::same<T>, true><<<1, 1>>>(p); }
void direct(float* p) { DISPATCH([&] { ns::apply<scalar, ns::same<scalar>, true><<<1, 1>>>(p); }); }
void through_template(float* p, __nv_bfloat16* q) { launch(p, 1); launch(q, 1); }
void through_class(double* p) { ns::Launcher<double>::run(p); }
"""


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("direct", ("ns::apply<float, &ns::same<float>, true>",)),
        (
            "through_template",
            ("ns::apply<__nv_bfloat16, &ns::twice<__nv_bfloat16>, true>", "ns::apply<float, &ns::same<float>, false>"),
        ),
        ("through_class", ("ns::apply<double, &ns::twice<double>, true>",)),
    ],
)
def test_concrete_kernels_are_found_behind_launchers(slice_of, host: str, expected: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    slice = slice_of(LAUNCHERS, host=host)
    assert slice.instantiations == expected
    assert "instantiations: read off the syntax tree" in slice.notes


JUST_IN_TIME = """
#include <cuda_bf16.h>
enum class Mode : int { kFast = 3, kSlow = 4 };
template <typename T, Mode kMode, bool kPad, int kWidth>
__global__ void move(T* p) {
  static_assert(kWidth * sizeof(T) == 16, "one vector");
  p[threadIdx.x] = p[threadIdx.x + kWidth];
}
template <typename T, int kWidth = 16 / sizeof(T)>
struct Mover {
  static void run(T* p) { move<T, Mode::kFast, false, kWidth><<<1, 32>>>(p); }
  static void pad(T* p) { move<T, Mode::kSlow, true, kWidth><<<1, 32>>>(p); }
};
"""


def test_a_class_that_launches_is_given_arguments(slice_of) -> None:  # type: ignore[no-untyped-def]
    slice = slice_of(JUST_IN_TIME, kernel="move")
    assert slice.instantiations[:2] == (
        "move<__nv_bfloat16, (Mode)3, false, 8>",
        "move<__nv_bfloat16, (Mode)4, true, 8>",
    )
    assert any("of the class that launches were chosen" in note for note in slice.notes)


def test_only_the_ops_own_method_counts(slice_of) -> None:  # type: ignore[no-untyped-def]
    slice = slice_of(JUST_IN_TIME, host="Mover::pad")
    assert all("(Mode)4, true" in text for text in slice.instantiations)
    assert slice.host_signature == (("T *", "p"),)


def test_a_kernel_without_any_launch_is_given_arguments_that_its_checks_allow(slice_of) -> None:  # type: ignore[no-untyped-def]
    alone = JUST_IN_TIME.split("template <typename T, int kWidth = ")[0]
    slice = slice_of(alone, kernel="move")
    assert slice.instantiations
    assert all(text.startswith("move<__nv_bfloat16, ") and text.endswith(", 8>") for text in slice.instantiations[:2])
    assert any("of the kernel were chosen" in note for note in slice.notes)


def test_a_kernel_that_is_no_template_is_its_own_instantiation(slice_of) -> None:  # type: ignore[no-untyped-def]
    source = "namespace ns { __global__ void fill(int* p) { *p = 1; } }\n"
    assert slice_of(source, kernel="fill").instantiations == ("ns::fill",)
    launched = source + "void op(int* p) { ns::fill<<<1, 1>>>(p); }\n"
    assert slice_of(launched, host="op").instantiations == ("ns::fill",)


def test_defaulted_parameters_are_left_to_their_defaults(read_source) -> None:  # type: ignore[no-untyped-def]
    parsed = read_source(JUST_IN_TIME)
    (mover,) = [f for f in parsed.found if "Mover" in f.declaration.names]
    assert choose_arguments(mover)[:3] == ("Mover<__nv_bfloat16>", "Mover<__half>", "Mover<float>")
