"""Given a small CUDA source, the kernels that are in it: the traps of real frameworks, in our own words."""

from __future__ import annotations

from astra_integrate.extract.body_hash import body_hash
from astra_integrate.extract.kernels import kernels, merged

ROWS = """\
#include <type_traits>
#define MAKE_KERNEL(NAME, EXPR)                                  \\
  __global__ void NAME##_all(const float* in, float* out, int n) { \\
    for (int i = threadIdx.x; i < n; i += blockDim.x) {          \\
      const float v = in[i];                                     \\
      out[i] = (EXPR);                                           \\
    }                                                            \\
  }
MAKE_KERNEL(halve, v * 0.5f)
MAKE_KERNEL(negate, -v)

template <typename T, int N>
__global__ std::enable_if_t<(N > 1)> shift(const T* in, T* out) { out[threadIdx.x * N] = in[0]; }
template <typename T, int N>
__global__ std::enable_if_t<(N == 1)> shift(const T* in, T* out) { out[threadIdx.x] = in[0]; }

// __global__ void in_a_comment() {}
static const char* text = "__global__ void in_a_string() {}";
"""


def found_in(parsed):
    return kernels(parsed.found, parsed.unit)


def test_kernels_that_a_macro_makes_lie_at_the_macros_calls(read_source):
    parsed = read_source(ROWS)
    found = {k.name: k for k in found_in(parsed) if k.name.endswith("_all")}
    assert set(found) == {"halve_all", "negate_all"}
    data = ROWS.encode()
    assert data[found["halve_all"].extent.start : found["halve_all"].extent.end].startswith(b"MAKE_KERNEL(halve,")


def test_overloads_kept_apart_by_a_constraint_are_two_kernels(read_source):
    found = [k for k in found_in(read_source(ROWS)) if k.name == "shift"]
    assert len(found) == 2
    assert len({k.extent.start for k in found}) == 2
    assert len({k.signature for k in found}) == 2


def test_comments_and_strings_hold_no_kernels(read_source):
    assert not [k for k in found_in(read_source(ROWS)) if k.name.startswith("in_a")]


def test_parameters_and_template_parameters(read_source):
    found = next(k for k in found_in(read_source(ROWS)) if k.name == "shift")
    assert [(p.name, p.direction) for p in found.parameters] == [("in", "in"), ("out", "inout")]
    assert [(t.name, t.kind, t.type) for t in found.template_parameters] == [("T", "type", ""), ("N", "value", "int")]


def test_of_two_bodies_behind_use_rocm_only_the_cuda_one_counts(read_source):
    source = """\
#ifdef USE_ROCM
__global__ void sum(const float* in, float* out, int n, int wave) { out[0] = in[wave]; }
#else
__global__ void sum(const float* in, float* out, int n) { out[0] = in[n]; }
#endif
"""
    (only,) = found_in(read_source(source))
    assert [p.name for p in only.parameters] == ["in", "out", "n"]


def test_the_device_pass_sees_what_the_architecture_guards(read_source):
    source = """\
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__global__ void modern(float* data) { data[0] = 1; }
#endif
__global__ void old(float* data) { data[0] = 2; }
"""
    assert {k.name for k in found_in(read_source(source))} == {"modern", "old"}
    assert {k.name for k in found_in(read_source(source, arch="sm_75"))} == {"old"}


def test_equal_names_in_anonymous_namespaces_of_two_files_stay_two(read_source):
    anonymous = "namespace %s { namespace { __global__ void copy(float* a) { a[0] = 1; } } }\n"
    files = {
        "unit.cu": '#include "other.cuh"\n' + anonymous % "more",
        "other.cuh": anonymous % "parts",
    }
    found = merged([found_in(read_source(files))])
    assert sorted((k.name, k.extent.file) for k in found) == [("more::copy", "unit.cu"), ("parts::copy", "other.cuh")]


def test_a_kernel_of_a_header_that_two_units_include_is_one_with_both_units(read_source):
    files = {
        "a.cu": '#include "shared.cuh"\n',
        "b.cu": '#include "shared.cuh"\n',
        "shared.cuh": "#pragma once\ntemplate <typename T> __global__ void fill(T* out, T v) { out[0] = v; }\n",
    }
    (one,) = merged([found_in(read_source(files, unit="a.cu")), found_in(read_source(files, unit="b.cu"))])
    assert one.units == ("a.cu", "b.cu")


def test_a_declaration_without_a_body_is_no_kernel_of_this_unit(read_source):
    assert found_in(read_source("__global__ void elsewhere(float* x);\nvoid host() {}\n")) == ()


def test_an_explicit_specialisation_is_a_kernel_of_its_own(read_source):
    source = """\
template <typename T> __global__ void put(T* x) { x[0] = T(1); }
template <> __global__ void put<float>(float* x) { x[0] = 2.f; }
"""
    assert [k.name for k in found_in(read_source(source))] == ["put", "put"]


def test_crlf_and_bytes_that_are_no_utf8(read_source):
    source = b"// caf\xe9\r\n__global__ void /* \xff */ keep(float* x) {\r\n  x[0] = 1.f;\r\n}\r\n"
    (kernel,) = found_in(read_source({"unit.cu": source}))
    assert source[kernel.extent.start : kernel.extent.end].startswith(b"__global__")
    assert source[kernel.extent.start : kernel.extent.end].endswith(b"}")
    assert type(kernel).from_json(kernel.to_json()) == kernel


def test_the_body_hash_knows_code_from_layout():
    before = "__global__ void k(float* x) {\r\n  // first\r\n  x[0] = 1;\r\n}"
    moved = "__global__ void k(float* x) { /* other */ x[0] = 1; }"
    assert body_hash(before) == body_hash(moved)
    assert body_hash(before) != body_hash(before.replace("= 1", "= 2"))
