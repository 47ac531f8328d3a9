"""Slices: of small sources of our own as before/after, of real frameworks as samples."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from astra_integrate import frameworks
from astra_integrate.errors import BadInput, CheckFailed
from astra_integrate.extract.render import device_text, op_text
from astra_integrate.extract.slicing import make_slice
from astra_integrate.frameworks.base import Target
from astra_integrate.measure.compile import cubin
from astra_integrate.measure.sass import disassemble, same_code
from astra_integrate.records import Slice

TWO_OPS = {
    "unit.cu": """\
#include "shared.cuh"
#include <cmath>
namespace ns {
template <typename T, T (*F)(const T&)>
__global__ void map_kernel(T* p) { p[threadIdx.x] = F(p[threadIdx.x]); }
template <typename T> __device__ T first_op(const T& x) { return WIDEN(x); }
template <typename T> __device__ T second_op(const T& x) { return x + T(kLanes); }
__global__ void other_kernel(float* p) { thin(p); }
}  // namespace ns
#define LAUNCH(F) ns::map_kernel<float, F<float>><<<1, kLanes>>>(static_cast<float*>(t.data))
void first(Tensor& t, double scale) { check(t); LAUNCH(ns::first_op); }
void second(Tensor& t) { LAUNCH(ns::second_op); ns::other_kernel<<<1, 1>>>(nullptr); }
""",
    "shared.cuh": """\
#pragma once
struct Tensor { void* data; };
constexpr int kLanes = 32;
#define TWO 2
#define WIDEN(x) ((x) * TWO)
inline void check(const Tensor& t) { if (t.data == nullptr) throw 1; }
__device__ inline void thin(float* p);
__device__ inline float deep(float x) { return x; }
__device__ inline void thin(float* p) { *p = deep(*p); }
""",
}


def names(slice: Slice, *roles: str) -> list[str]:
    return [d.names[0] for d in slice.declarations if d.role in roles]


@pytest.fixture(scope="module")
def first(slice_of) -> Slice:  # type: ignore[no-untyped-def]
    return slice_of(TWO_OPS, host="first")


def test_an_op_holds_what_it_reaches_and_no_more(first: Slice) -> None:
    assert names(first, "device") == ["map_kernel", "first_op"]
    assert names(first, "macro") == ["TWO", "WIDEN", "LAUNCH"]
    assert names(first, "host") == ["Tensor", "check", "first"]
    assert names(first, "either") == ["kLanes"]


def test_an_op_knows_its_kernel_signature_and_launch(first: Slice) -> None:
    assert first.kernel.name == "ns::map_kernel"
    assert [p.name for p in first.kernel.parameters] == ["p"]
    assert first.host_signature == (("Tensor &", "t"), ("double", "scale"))
    assert first.instantiations == ("ns::map_kernel<float, &ns::first_op<float>>",)
    (launch,) = first.launches
    assert (launch.host_function, launch.macro, launch.block) == ("first", "LAUNCH", "kLanes")
    text = (Path(first.source.root) / launch.file).read_text()
    assert text[launch.offset :].startswith("<<<")


def test_a_thin_kernels_helper_is_in_with_its_prototype(slice_of) -> None:  # type: ignore[no-untyped-def]
    slice = slice_of(TWO_OPS, host="second")
    assert names(slice, "device") == ["thin", "deep", "thin", "map_kernel", "second_op", "other_kernel"]


def test_the_source_map_leads_to_the_bytes(first: Slice) -> None:
    for d in first.declarations:
        cut = (Path(first.source.root) / d.extent.file).read_bytes()[d.extent.start : d.extent.end]
        assert cut.decode("utf-8", "surrogateescape") == d.text
        assert hashlib.sha256(cut).hexdigest() == d.extent.bytes_digest


def test_a_change_in_a_helper_changes_the_closure_hash_but_not_the_kernels_body(slice_of) -> None:  # type: ignore[no-untyped-def]
    changed = {**TWO_OPS, "shared.cuh": TWO_OPS["shared.cuh"].replace("{ return x; }", "{ return -x; }")}
    before, after = (slice_of(source, kernel="other_kernel") for source in (TWO_OPS, changed))
    assert before.kernel.body_hash == after.kernel.body_hash
    assert before.closure_hash != after.closure_hash
    assert before.launcher_digest == after.launcher_digest


def test_a_kernel_alone_brings_the_functions_that_launch_it(slice_of) -> None:  # type: ignore[no-untyped-def]
    slice = slice_of(TWO_OPS, kernel="ns::other_kernel")
    assert [d.names[0] for d in slice.declarations if d.is_kernel] == ["other_kernel"]
    assert "second" in names(slice, "host")
    assert "first" not in names(slice, "host")
    assert slice.host_function is None


def test_device_text_is_the_device_code_alone(first: Slice) -> None:
    text = device_text(first).text
    assert "first_op" in text
    assert "#define TWO 2" in text
    for word in ("Tensor", "LAUNCH", "<<<", "second_op", "other_kernel"):
        assert word not in text
    assert all(d.text in op_text(first).text for d in first.declarations)


def test_kernels_that_a_macro_makes_together_with_their_host_function(slice_of) -> None:  # type: ignore[no-untyped-def]
    source = """\
__device__ inline float step(float x) { return x; }
#define MAKE(NAME, OP)                                                        \\
  __global__ void NAME##_kernel(float* p) { *p = step(*p) OP 1.f; } \\
  void NAME(float* p) { NAME##_kernel<<<1, 1>>>(p); }
MAKE(grow, +)
MAKE(shrink, -)
"""
    slice = slice_of(source, host="grow")
    assert [d.text for d in slice.declarations if d.is_kernel] == ["MAKE(grow, +)"]
    assert slice.kernel.name == "grow_kernel"
    assert {name for d in slice.declarations for name in d.names} >= {"step", "MAKE", "grow", "grow_kernel"}


def test_the_overload_that_device_code_takes_is_the_one_shown(slice_of) -> None:  # type: ignore[no-untyped-def]
    # In the host pass __CUDA_ARCH__ is not defined and the generic overload would win.
    source = """\
#include <type_traits>
template <typename T> struct Packs { static constexpr bool value = false; };
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <> struct Packs<float> { static constexpr bool value = true; };
#endif
template <typename T, int W> __global__ std::enable_if_t<(W == 0) || !Packs<T>::value> norm(T* slow) {}
template <typename T, int W> __global__ std::enable_if_t<(W > 0) && Packs<T>::value> norm(T* fast) {}
void op(float* p) { norm<float, 8><<<1, 1>>>(p); }
"""
    slice = slice_of(source, host="op")
    assert slice.kernel.parameters[0].name == "fast"
    assert sum(d.is_kernel for d in slice.declarations) == 2
    assert any(note.startswith("frozen to sm_90a: Packs") for note in slice.notes)


def test_what_another_unit_defines_is_said(slice_of) -> None:  # type: ignore[no-untyped-def]
    source = (
        "void elsewhere(int* p);\n__global__ void k(int* p) {}\nvoid op(int* p) { elsewhere(p); k<<<1, 1>>>(p); }\n"
    )
    assert "defined in another unit: elsewhere" in slice_of(source, host="op").notes


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"host": "third"}, "doesn't define third"),
        ({"kernel": "no_kernel"}, "doesn't define no_kernel"),
        ({"host": "check"}, "reaches no kernel"),
    ],
)
def test_what_is_not_there_is_refused_by_name(slice_of, target: dict[str, str], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=message):
        slice_of(TWO_OPS, **target)


def test_a_missing_header_is_a_failure_that_names_it(slice_of) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CheckFailed, match=r"unit\.cu can't be read: 'not/there\.h' file not found"):
        slice_of('#include "not/there.h"\n__global__ void k() {}\n', kernel="k")


def test_the_record_survives_the_round_trip(first: Slice) -> None:
    assert Slice.from_json(first.to_json()) == first


def compiled(slice: Slice, toolchain, folder: Path) -> Path:  # type: ignore[no-untyped-def]
    """The cubin of the device text with the first instantiation of every kernel."""
    firsts = list({text.split("<")[0]: text for text in reversed(slice.instantiations)}.values())
    return cubin(device_text(slice, keep=firsts).text, slice.flags, slice.arch, toolchain, folder)


def test_a_small_slice_compiles(first: Slice, toolchain, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert b"map_kernel" in compiled(first, toolchain, tmp_path).read_bytes()


@pytest.mark.network
@pytest.mark.parametrize(
    ("release", "op"),
    [
        ("vllm_0_12", "silu_and_mul"),
        ("vllm_0_33", "silu_and_mul"),
        ("vllm_0_33", "fused_add_rms_norm"),
        ("vllm_0_33", "merge_attn_states"),
    ],
)
def test_real_ops_are_cut_and_compile(  # type: ignore[no-untyped-def]
    request: pytest.FixtureRequest, release: str, op: str, settings_, toolchain, tmp_path: Path
) -> None:
    source = request.getfixturevalue(release)
    (target,) = frameworks.get("vllm").find(Path(source.root), op)
    slice = make_slice(source, target, settings_, toolchain)
    assert slice.op == op
    assert "BFloat16" in slice.instantiations[0] or "bfloat16" in slice.instantiations[0]
    assert slice.launches
    assert "Tensor" not in device_text(slice).text
    for d in slice.declarations:
        cut = (Path(source.root) / d.extent.file).read_bytes()[d.extent.start : d.extent.end]
        assert hashlib.sha256(cut).hexdigest() == d.extent.bytes_digest
    assert slice.kernel.name.split("::")[-1].encode() in compiled(slice, toolchain, tmp_path).read_bytes()


@pytest.mark.network
def test_a_just_in_time_kernel_is_cut_and_compiles(sglang_0_5_23, settings_, toolchain, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    targets = frameworks.get("sglang").find(Path(sglang_0_5_23.root), "act_and_mul_kernel")
    slice = make_slice(sglang_0_5_23, targets[0], settings_, toolchain)
    assert slice.kernel.name.endswith("::act_and_mul_kernel")
    assert "bfloat16" in slice.instantiations[0]
    assert "TensorView" not in device_text(slice).text
    assert compiled(slice, toolchain, tmp_path).stat().st_size > 0


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("op", ["silu_and_mul", "fused_add_rms_norm", "merge_attn_states"])
def test_the_slice_is_the_kernel_to_the_last_instruction(  # type: ignore[no-untyped-def]
    vllm_0_33, op: str, settings_, toolchain, tmp_path: Path
) -> None:
    root = Path(vllm_0_33.root)
    (target,) = frameworks.get("vllm").find(root, op)
    slice = make_slice(vllm_0_33, target, settings_, toolchain)
    text = device_text(slice, keep=slice.instantiations).text
    alone = disassemble(cubin(text, slice.flags, slice.arch, toolchain, tmp_path), toolchain)
    unit = (root / slice.unit).read_text()
    folder = str((root / slice.unit).parent)
    flags = slice.flags.model_copy(update={"include_dirs": (*slice.flags.include_dirs, folder)})
    whole = disassemble(cubin(unit, flags, slice.arch, toolchain, tmp_path, root=root), toolchain)
    assert len(alone) >= len(slice.instantiations)
    assert [symbol for symbol, code in alone.items() if not same_code(code, whole[symbol])] == []


@pytest.mark.network
def test_no_unit_is_a_clear_refusal(vllm_0_33, settings_, toolchain) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match="can't be sliced"):
        make_slice(vllm_0_33, Target("nothing", None, None, ()), settings_, toolchain)
