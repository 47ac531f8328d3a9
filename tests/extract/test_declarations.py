"""Before/after: CUDA text in, the declarations with their exact bytes out."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import pytest

from astra_integrate.extract.slicing import Parsed
from astra_integrate.records import Declaration

SOURCE = """\
#pragma once
#include <type_traits>
#define WIDTH 4  // elements
#define LAUNCH(NAME, ...) \\
  NAME<<<1, 32>>>(__VA_ARGS__)   /* spelled
  over two lines */

/* a comment */
typedef struct {
  int a;
} Pair;

enum Colour { RED, GREEN = 3 };
enum class Kind : int { kOne, kTwo };
int first_number, second_number = 2;
constexpr int kLanes = 32;
__constant__ float table[4];
namespace outer::inner {
namespace {
template <typename T>
__device__ __forceinline__ T twice(T x) { return x + x; }
}  // namespace
template <typename T>
struct Box;
template <>
struct Box<float> {
  __device__ float get() const;
  float value;
};
__device__ float Box<float>::get() const { return value; }
__device__ inline float operator+(const Box<float>& a, const Box<float>& b) { return a.value + b.value; }
using std::is_same_v;
using Alias = Box<float>;

template <typename T, int width>
__global__ std::enable_if_t<(width > 0)> scale(T* out) { out[threadIdx.x] = twice(out[threadIdx.x]); }
template <typename T, int width>
__global__ std::enable_if_t<(width == 0)>
scale(T* out) { out[0] = T(0); }
}  // namespace outer::inner

#define MAKE_KERNEL(NAME, OP)                                  \\
  __global__ void NAME##_kernel(float* out) { out[0] OP 1.f; } \\
  void NAME(float* out) { NAME##_kernel<<<1, 1>>>(out); }
MAKE_KERNEL(grow, +=)
MAKE_KERNEL(shrink, -=);

#ifdef NEVER
__global__ void hidden(float* out) {}
#endif

#define ALIAS_GLOBAL __global__ __launch_bounds__(256)
ALIAS_GLOBAL void
bounded(float* out, const char* text = "};{") {
  out[0] = '}' + 1'000;
}
extern "C" __global__ void plain(float* out) {}

#if defined(NEVER)
void half(int a)
#else
void half(float a)
#endif
{
  (void)a;
}
#define BEGIN_SPACE namespace spaced {
#define END_SPACE }
BEGIN_SPACE
__device__ int in_space() { return 1; }
END_SPACE
static_assert(WIDTH == 4);
#define WRAP(...) __VA_ARGS__
WRAP(__device__ int wrapped() { return 1; })
using namespace outer;
__host__ __device__ int both() { return 0; }
constexpr int folded() { return 0; }
void last(float* out) { LAUNCH(plain, out); }
void with_macro(float* out) {
#define INSIDE 1
  LAUNCH(plain, out);
}
"""


@pytest.fixture(scope="module")
def parsed(read_source) -> Parsed:  # type: ignore[no-untyped-def]
    return read_source(SOURCE)


@pytest.fixture(scope="module")
def found(parsed: Parsed) -> list[Declaration]:
    return [f.declaration for f in parsed.found]


def named(found: list[Declaration], name: str) -> Declaration:
    (one,) = [d for d in found if name in d.names]
    return one


def test_the_input_is_read_without_a_complaint(parsed: Parsed) -> None:
    assert parsed.tree.diagnostics == ()


def test_every_extent_holds_exactly_the_text_and_its_digest(parsed: Parsed, found: list[Declaration]) -> None:
    data = (Path(parsed.source.root) / "unit.cu").read_bytes()
    assert len(found) > 30
    for d in found:
        cut = data[d.extent.start : d.extent.end]
        assert cut.decode() == d.text
        assert hashlib.sha256(cut).hexdigest() == d.extent.bytes_digest


def test_no_two_declarations_share_bytes(found: list[Declaration]) -> None:
    extents = sorted((d.extent.start, d.extent.end) for d in found)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(extents))


def test_order_is_that_of_the_unit(found: list[Declaration]) -> None:
    assert [d.order for d in found] == list(range(len(found)))
    assert [d.extent.start for d in found] == sorted(d.extent.start for d in found)


def test_ids_are_unique_and_tell_the_place(found: list[Declaration]) -> None:
    assert len({d.id for d in found}) == len(found)
    assert named(found, "twice").id == f"unit.cu:twice@{SOURCE.index('template <typename T>')}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("WIDTH", "#define WIDTH 4"),
        ("Pair", "typedef struct {\n  int a;\n} Pair;"),
        ("first_number", "int first_number, second_number = 2;"),
        ("second_number", "int first_number, second_number = 2;"),
        ("RED", "enum Colour { RED, GREEN = 3 };"),
        ("kTwo", "enum class Kind : int { kOne, kTwo };"),
        ("grow_kernel", "MAKE_KERNEL(grow, +=)"),
        ("grow", "MAKE_KERNEL(grow, +=)"),
        ("shrink_kernel", "MAKE_KERNEL(shrink, -=);"),
        ("is_same_v", "using std::is_same_v;"),
        ("plain", 'extern "C" __global__ void plain(float* out) {}'),
        ("in_space", "__device__ int in_space() { return 1; }"),
        ("wrapped", "WRAP(__device__ int wrapped() { return 1; })"),
        ("table", "__constant__ float table[4];"),
        ("folded", "constexpr int folded() { return 0; }"),
    ],
)
def test_a_declaration_is_cut_as_one_would_by_hand(found: list[Declaration], name: str, text: str) -> None:
    cut = named(found, name).text
    assert cut.split("  //")[0] == text


def test_a_macro_goes_to_the_end_of_its_last_line(found: list[Declaration]) -> None:
    assert named(found, "WIDTH").text.startswith("#define WIDTH 4")
    launch = named(found, "LAUNCH").text
    assert launch.startswith("#define LAUNCH(NAME, ...) \\\n")
    assert launch.rstrip().endswith("NAME<<<1, 32>>>(__VA_ARGS__)")


def test_a_kernel_with_an_alias_for_global_starts_at_the_alias(found: list[Declaration]) -> None:
    bounded = named(found, "bounded")
    assert bounded.text.startswith("ALIAS_GLOBAL void\nbounded(")
    assert bounded.text.endswith("1'000;\n}")
    assert bounded.is_kernel


def test_a_declaration_never_holds_half_an_if(found: list[Declaration]) -> None:
    half = named(found, "half").text
    assert half.startswith("#if defined(NEVER)\nvoid half(int a)\n#else")
    assert half.endswith("{\n  (void)a;\n}")
    assert half.count("#if") == half.count("#endif") == 1


def test_what_a_false_if_hides_is_not_there(found: list[Declaration]) -> None:
    assert not [d for d in found if "hidden" in d.names]


def test_overloads_and_specialisations_are_declarations_of_their_own(found: list[Declaration]) -> None:
    scales = [d for d in found if "scale" in d.names]
    assert [d.text.split("(width ")[1][:3] for d in scales] == ["> 0", "== "]
    assert all(d.is_kernel and d.role == "device" for d in scales)
    boxes = [d for d in found if "Box" in d.names]
    assert [d.kind for d in boxes] == ["CLASS_TEMPLATE", "STRUCT_DECL", "CXX_METHOD"]


def test_namespaces_are_the_enclosing_ones_with_an_anonymous_one_empty(found: list[Declaration]) -> None:
    assert named(found, "twice").namespaces == ("outer", "inner", "")
    assert named(found, "Alias").namespaces == ("outer", "inner")
    assert named(found, "in_space").namespaces == ("spaced",)
    assert named(found, "plain").namespaces == ()


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("twice", "device"),
        ("table", "device"),
        ("plain", "device"),
        ("kLanes", "either"),
        ("Pair", "either"),
        ("RED", "either"),
        ("both", "either"),
        ("folded", "either"),
        ("first_number", "host"),
        ("half", "host"),
        ("with_macro", "host"),
        ("last", "host"),
        ("LAUNCH", "macro"),
    ],
)
def test_the_role_tells_where_it_can_be_used(found: list[Declaration], name: str, role: str) -> None:
    assert named(found, name).role == role


def test_kernels_are_marked(found: list[Declaration]) -> None:
    kernels = {name for d in found if d.is_kernel for name in d.names}
    assert kernels == {"scale", "grow_kernel", "grow", "shrink_kernel", "shrink", "bounded", "plain"}


def test_a_using_directive_has_no_name(found: list[Declaration]) -> None:
    (directive,) = [d for d in found if d.kind == "USING_DIRECTIVE"]
    assert directive.names == ()
    assert directive.text == "using namespace outer;"


def test_crlf_and_bytes_that_are_no_utf8_keep_their_offsets(read_source) -> None:  # type: ignore[no-untyped-def]
    content = (
        b"// caf\xe9 \xff\r\n"
        b"#define STEP(x) \\\r\n  ((x) + 1)\r\n"
        b'__device__ const char* word() { return "na\xefve } {"; }  // \xe9\r\n'
        b"__global__ void after(int* out)\r\n{\r\n  *out = STEP(1); // \xb5\r\n}\r\n"
    )
    parsed = read_source({"unit.cu": content})
    cuts = {f.declaration.names[0]: f.declaration for f in parsed.found}
    assert cuts["STEP"].text == "#define STEP(x) \\\r\n  ((x) + 1)"
    assert cuts["after"].text.startswith("__global__ void after(int* out)\r\n{")
    for declaration in cuts.values():
        cut = content[declaration.extent.start : declaration.extent.end]
        assert declaration.text.encode("utf-8", "surrogateescape") == cut


def test_a_macro_inside_a_body_belongs_to_the_body(found: list[Declaration]) -> None:
    assert not [d for d in found if "INSIDE" in d.names]
    assert "#define INSIDE 1" in named(found, "with_macro").text


def test_headers_come_where_they_are_included(read_source) -> None:  # type: ignore[no-untyped-def]
    parsed = read_source(
        {
            "own/unit.cu": '#include "part.cuh"\n__global__ void kernel(int* out) { *out = helper(); }\n',
            "own/part.cuh": "__device__ inline int helper() { return 1; }\n",
        },
        unit="own/unit.cu",
    )
    assert [f.declaration.id for f in parsed.found] == ["own/part.cuh:helper@0", "own/unit.cu:kernel@20"]
