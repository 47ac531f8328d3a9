"""Slices of our own rendered: what is in the text, in which order, and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_integrate.errors import BadInput
from astra_integrate.extract.render import Rendered, device_text, keep_text, op_text
from astra_integrate.records import (
    Addition,
    CompileFlags,
    Declaration,
    Extent,
    Kernel,
    Lowering,
    Replacement,
    Slice,
    Source,
)


def declaration(order: int, name: str, text: str, role: str, namespaces: tuple[str, ...] = ()) -> Declaration:
    return Declaration(
        id=f"f.cu:{name}@{order}",
        names=(name,),
        kind="MACRO_DEFINITION" if role == "macro" else "FUNCTION_DECL",
        role=role,  # type: ignore[arg-type]
        namespaces=namespaces,
        order=order,
        extent=Extent(file="f.cu", start=order, end=order, bytes_digest=""),
        text=text,
        is_kernel="__global__" in text,
    )


def make(*declarations: Declaration, includes: tuple[str, ...] = (), instantiations: tuple[str, ...] = ()) -> Slice:
    kernel = next(d for d in declarations if d.is_kernel)
    return Slice(
        source=Source(framework="own", version="0", spec="own", kind="path", root="", content=""),
        unit="f.cu",
        arch="sm_90a",
        kernel=Kernel(name=kernel.names[0], extent=kernel.extent, signature="", body_hash=""),
        declarations=declarations,
        includes=includes,
        instantiations=instantiations,
        flags=CompileFlags(standard="c++20"),
    )


SLICE = make(
    declaration(0, "LDG", "#define LDG(p) __ldg(p)", "macro"),
    declaration(1, "DISPATCH", "#define DISPATCH(...) __VA_ARGS__()", "macro"),
    declaration(2, "helper", "__device__ int helper(int x) { return x; }", "device", ("a", "b")),
    declaration(3, "chosen", "template <class T> __device__ T chosen(T x) { return x; }", "device", ("a", "b")),
    declaration(4, "k", "template <class T> __global__ void k(T* p) { *p = helper(LDG(p)); }", "device", ("a", "")),
    declaration(5, "LAUNCH", "#define LAUNCH(F) a::k<F><<<1, 1>>>(nullptr)", "macro"),
    declaration(6, "op", "void op(Tensor& t) { DISPATCH([&] { LAUNCH(int); }); }", "host"),
    includes=("<torch/headeronly/util/Half.h>", "<cub/cub.cuh>", "<cmath>", "<tvm/ffi/any.h>"),
)


def lowering(*parts: Replacement | Addition) -> Lowering:
    return Lowering(
        candidate="c",
        marker="_m",
        replaced=tuple(p for p in parts if isinstance(p, Replacement)),
        added=tuple(p for p in parts if isinstance(p, Addition)),
    )


def at(rendered: Rendered, id: str) -> str:
    span = rendered.span(id)
    return rendered.text.encode("utf-8", "surrogateescape")[span.start : span.end].decode("utf-8", "surrogateescape")


def test_device_text_reads_as_one_would_write_it() -> None:
    assert device_text(SLICE, keep=["a::k<int>"]).text == (
        "#include <cmath>\n"
        "#define LDG(p) __ldg(p)\n"
        "namespace a {\n"
        "namespace b {\n"
        "__device__ int helper(int x) { return x; }\n"
        "}  // namespace b\n"
        "namespace {\n"
        "template <class T> __global__ void k(T* p) { *p = helper(LDG(p)); }\n"
        "}  // namespace\n"
        "}  // namespace a\n"
        "namespace {\n"
        "[[maybe_unused]] void* astra_keep[] = {\n"
        "    (void*)&a::k<int>};\n"
        "}\n"
    )


def test_device_text_holds_no_host_code() -> None:
    text = device_text(SLICE).text
    for word in ("Tensor", "<<<", "DISPATCH", "LAUNCH", "chosen"):
        assert word not in text


def test_a_name_that_device_and_host_code_share_brings_no_host_code() -> None:
    text = "__global__ void k(int* p) { int op = 1; *p = op; }"
    shared = SLICE.model_copy(update={"declarations": (declaration(0, "k", text, "device"), SLICE.declarations[-1])})
    assert "Tensor" not in device_text(shared).text


def test_a_device_function_that_only_an_instantiation_names_is_in() -> None:
    assert "chosen" in device_text(SLICE, keep=["a::k<&a::b::chosen<int>>"]).text
    named = SLICE.model_copy(update={"instantiations": ("a::k<&a::b::chosen<int>>",)})
    assert "chosen" in device_text(named).text


def test_libraries_stay_where_they_are_mentioned() -> None:
    used = SLICE.model_copy(
        update={"declarations": (declaration(0, "k", "__global__ void k(c10::Half* p) { cub::Reduce(p); }", "device"),)}
    )
    lines = device_text(used).text.splitlines()
    assert lines[:3] == ["#include <torch/headeronly/util/Half.h>", "#include <cub/cub.cuh>", "#include <cmath>"]
    assert "tvm" not in device_text(used).text


def test_op_text_holds_everything_but_tensor_headers() -> None:
    text = op_text(SLICE).text
    assert all(d.text in text for d in SLICE.declarations)
    assert "<cub/cub.cuh>" in text
    assert "<torch" not in text
    assert "<tvm" not in text


def test_a_replacement_takes_the_place_of_its_declaration() -> None:
    new = "__device__ int helper(int x) { return x + 1; }"
    rendered = device_text(SLICE, lowering(Replacement(declaration="f.cu:helper@2", text=new)))
    assert at(rendered, "f.cu:helper@2") == new
    assert "return x; }\n}  // namespace b" not in rendered.text


def test_an_addition_stands_in_its_anchors_namespaces() -> None:
    copy = "template <class T> __global__ void k_m(T* p) { *p = extra(p); }"
    extra = "__device__ int extra(int* p) { return *p; }"
    rendered = device_text(
        SLICE,
        lowering(
            Addition(anchor="f.cu:k@4", where="after", name="k_m", text=copy),
            Addition(anchor="f.cu:k@4", where="before", name="extra", text=extra),
        ),
    )
    assert f"namespace {{\n{extra}\ntemplate <class T> __global__ void k(T* p)" in rendered.text
    assert f"helper(LDG(p)); }}\n{copy}\n}}  // namespace\n" in rendered.text


def test_a_helper_that_nothing_reaches_and_a_copied_launch_stay_out_of_device_text() -> None:
    change = lowering(
        Addition(
            anchor="f.cu:LAUNCH@5", where="after", name="LAUNCH_m", text="#define LAUNCH_m(F) a::k<F><<<2, 1>>>(0)"
        ),
        Addition(anchor="f.cu:helper@2", where="after", name="lost", text="__device__ int lost() { return 0; }"),
        Addition(
            anchor="f.cu:op@6", where="before", name="start", text="void start() { a::k<int><<<1, 1>>>(nullptr); }"
        ),
    )
    device = device_text(SLICE, change).text
    assert "LAUNCH_m" not in device
    assert "lost" not in device
    assert "start" not in device
    op = op_text(SLICE, change).text
    assert "#define LAUNCH(F) a::k<F><<<1, 1>>>(nullptr)\n#define LAUNCH_m(F) a::k<F><<<2, 1>>>(0)\n" in op
    assert "void start()" in op


def test_a_new_helper_of_a_changed_kernel_is_in() -> None:
    rendered = device_text(
        SLICE,
        lowering(
            Replacement(declaration="f.cu:k@4", text="template <class T> __global__ void k(T* p) { fresh(p); }"),
            Addition(anchor="f.cu:k@4", name="fresh", text="__device__ void fresh(void*) {}"),
        ),
    )
    assert "fresh(void*)" in rendered.text
    assert "helper" not in rendered.text


def test_a_redefined_macro_is_undefined_first() -> None:
    twice = make(
        declaration(0, "X", "#define X 1", "macro"),
        declaration(1, "k", "__global__ void k(int* p) { *p = X; }", "device"),
        declaration(2, "X", "#define X 2", "macro"),
        declaration(3, "j", "__global__ void j(int* p) { *p = X; }", "device"),
    )
    text = device_text(twice).text
    assert text.index("#define X 1") < text.index("void k") < text.index("#undef X\n#define X 2") < text.index("void j")


def test_a_lowering_of_another_slice_is_refused() -> None:
    with pytest.raises(BadInput, match=r"holds no declaration 'f\.cu:other@1'"):
        device_text(SLICE, lowering(Replacement(declaration="f.cu:other@1", text="")))


def test_nothing_to_keep_is_no_text() -> None:
    assert keep_text(()) == ""


NAMESPACES = st.lists(st.sampled_from(["a", "b", ""]), max_size=3).map(tuple)
TEXTS = st.text(st.characters(exclude_characters="#", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(st.tuples(NAMESPACES, TEXTS), max_size=8), st.binary(max_size=8))
def test_spans_hold_exactly_the_texts(parts: list[tuple[tuple[str, ...], str]], raw: bytes) -> None:
    odd = raw.decode("utf-8", "surrogateescape")
    declarations = [declaration(i, f"n{i}", "x" + text, "host", ns) for i, (ns, text) in enumerate(parts)]
    kernel = declaration(99, "k", f"__global__ void k() {{}} // {odd}", "device")
    slice = make(*declarations, kernel)
    rendered = op_text(slice)
    for d in slice.declarations:
        assert at(rendered, d.id) == d.text
    assert rendered.text.count("namespace") >= len({ns for ns, _ in parts if ns})


@given(st.lists(NAMESPACES, max_size=8))
def test_every_namespace_that_is_opened_is_closed(spaces: list[tuple[str, ...]]) -> None:
    declarations = [declaration(i, f"n{i}", f"int n{i};", "either", ns) for i, ns in enumerate(spaces)]
    slice = make(*declarations, declaration(99, "k", "__global__ void k();", "device"))
    depth: list[str] = []
    for line in op_text(slice).text.splitlines():
        if line.startswith("namespace"):
            depth.append(line.removeprefix("namespace").removesuffix("{").strip())
        elif line.startswith("}"):
            depth.pop()
        elif line.startswith("int n"):
            assert tuple(depth) == spaces[int(line.removeprefix("int n").removesuffix(";"))]
    assert depth == []
