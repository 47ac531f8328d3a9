"""Before → after of lowering: what is copied, what is renamed, what the launcher becomes."""

from __future__ import annotations

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.records import (
    Addition,
    Candidate,
    DeployedStep,
    Launch,
    LaunchPlan,
    LaunchStep,
    Lowering,
    Replacement,
    Slice,
    Variant,
)
from astra_integrate.reinject.lower import lower, marker_of

SHARED_MACRO = """\
#include <algorithm>
namespace ns {
//! scale device ns
template <typename T>
__device__ T scale(T x) { return x + x; }

//! twice kernel-role ns kernel
template <typename T, T (*F)(T)>
__global__ void twice(T* out, const T* in, int d) {
  for (int i = threadIdx.x; i < d; i += blockDim.x) out[i] = F(in[i]);
}
}  // namespace ns

//! LAUNCH macro
#define LAUNCH(FUNCTION)                                            \\
  dim3 grid(rows);                                                  \\
  dim3 block(std::min(width, 1024));                                \\
  DISPATCH(type, "twice", [&] {                                     \\
    ns::twice<scalar_t, FUNCTION<scalar_t>>                         \\
        <<<grid, block, 0, stream>>>(out, in, width); \\
  });

//! first host
void first(Tensor& out, Tensor& in) {
  LAUNCH(ns::scale);  // twice as much
}

void second(Tensor& out, Tensor& in) { LAUNCH(ns::scale); }
""".replace("kernel-role", "device")
FASTER = """\
template <typename T, T (*F)(T)>
__global__ void twice(T* out, const T* in, int d) {
  out[threadIdx.x] = F(in[threadIdx.x]);
}"""
PARAMETERS = (("out", "T *"), ("in", "const T *"), ("d", "int"))
TEMPLATES = (("T", "type"), ("F", "T (*)(T)"))


@pytest.fixture
def shared(cut) -> Slice:  # type: ignore[no-untyped-def]
    return cut(
        {"ops.cu": SHARED_MACRO},
        "first",
        kernel="ns::twice",
        parameters=PARAMETERS,
        templates=TEMPLATES,
        instantiations=("ns::twice<float, &ns::scale<float>>",),
    )


def _plan(*variants: Variant) -> LaunchPlan:
    return LaunchPlan(variants=variants)


def _added(lowering: Lowering, start: str) -> str:
    (text,) = [a.text for a in lowering.added if a.name.startswith(start)]
    return text


def test_a_shared_macro_is_copied_and_only_the_ops_own_launch_is_redirected(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    lowering = lower(shared, candidate(shared, {"twice": FASTER}, strategy="no loop"))
    m = lowering.marker
    assert [a.name for a in lowering.added] == [f"twice{m}", f"LAUNCH{m}"]
    assert _added(lowering, "twice") == "// As twice, but for first alone: no loop.\n" + FASTER.replace(
        "twice", f"twice{m}"
    )
    macro = _added(lowering, "LAUNCH")
    assert macro.startswith(f"#define LAUNCH{m}(FUNCTION)") and f"ns::twice{m}<scalar_t" in macro
    assert '"twice", [&]' in macro, "a string is no name"
    (host,) = lowering.replaced
    assert host.text == "void first(Tensor& out, Tensor& in) {\n" + f"  LAUNCH{m}(ns::scale);  // twice as much\n}}"
    assert lowering.instantiations == (f"ns::twice{m}<float, &ns::scale<float>>",)
    assert "second" not in str(lowering)


def test_a_device_function_is_changed_through_the_host_functions_own_argument(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    new = "template <typename T>\n__device__ T scale(T x) { return 2 * x; }"
    lowering = lower(shared, candidate(shared, {"scale": new}))
    m = lowering.marker
    assert [a.name for a in lowering.added] == [f"scale{m}"], "neither the macro nor the kernel leads to it"
    assert f"LAUNCH(ns::scale{m});" in lowering.replaced[0].text
    new_argument = f"ns::twice<float, &ns::scale{m}<float>>"
    assert lowering.instantiations == (new_argument,), "the kernel keeps its name, its argument has a new one"


def test_geometry_is_written_into_the_launch(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    step = LaunchStep(kernel="ns::twice", block="min(block_x, ceil_div(d, 16 / sizeof(T)) + d % (16 / sizeof(T)))")
    lowering = lower(shared, candidate(shared, {"twice": FASTER}, plan=_plan(Variant(steps=(step,)))))
    macro = _squeezed(_added(lowering, "LAUNCH"))
    assert "constexpr int64_t pack = 16 / sizeof(scalar_t);" in macro
    assert "const int64_t threads = std::min<int64_t>(block.x, (width + pack - 1) / pack + width % pack);" in macro
    assert (
        f"ns::twice{lowering.marker}<scalar_t, FUNCTION<scalar_t>> <<<grid, threads, 0, stream>>>(out, in, width);"
        in macro
    )


def test_a_guard_keeps_the_deployed_launch(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    step = LaunchStep(kernel="twice", block="64")
    plan = _plan(Variant(when="d % 4 == 0 and grid_x > 1", steps=(step,)), Variant(steps=(DeployedStep(),)))
    lowering = lower(shared, candidate(shared, {"twice": FASTER}, plan=plan))
    macro = _squeezed(_added(lowering, "LAUNCH"))
    assert (
        "if (width % 4 == 0 && grid.x > 1) { "
        f"ns::twice{lowering.marker}<scalar_t, FUNCTION<scalar_t>> <<<grid, 64, 0, stream>>>(out, in, width); "
        "} else { ns::twice<scalar_t, FUNCTION<scalar_t>> <<<grid, block, 0, stream>>>(out, in, width); } });"
    ) in macro


def test_guards_are_tried_in_order_and_an_open_last_one_is_the_deployed_launch(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    plan = _plan(
        Variant(when="d > 1024", steps=(LaunchStep(kernel="twice", grid="grid_x * 2"),)),
        Variant(when="d > 32", steps=(LaunchStep(kernel="twice"),)),
    )
    macro = _squeezed(_added(lower(shared, candidate(shared, {"twice": FASTER}, plan=plan)), "LAUNCH"))
    first, second, third = (macro.index(text) for text in ("if (width > 1024)", "else if (width > 32)", "} else {"))
    assert first < second < macro.rindex("} else { ns::twice<scalar_t") and third
    assert "<<<grid.x * 2, block, 0, stream>>>" in macro


def test_an_added_kernel_takes_the_place_of_the_deployed_one(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    kernel = next(d for d in shared.declarations if d.is_kernel)
    new = FASTER.replace("twice", "twice_wide")
    added = (Addition(anchor=kernel.id, where="after", name="twice_wide", text=new),)
    plan = _plan(Variant(steps=(LaunchStep(kernel="twice_wide"),)))
    lowering = lower(shared, candidate(shared, {}, added=added, plan=plan))
    m = lowering.marker
    assert [a.name for a in lowering.added] == [f"twice_wide{m}", f"LAUNCH{m}"], "the deployed kernel needs no copy"
    assert f"ns::twice_wide{m}<scalar_t" in _added(lowering, "LAUNCH")
    assert lowering.instantiations == (f"ns::twice_wide{m}<float, &ns::scale<float>>",)


def test_an_added_function_is_named_anew_where_it_is_used(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    kernel = next(d for d in shared.declarations if d.is_kernel)
    added = (Addition(anchor=kernel.id, name="wide", text="__device__ int wide(int x) { return wide(x - 1); }"),)
    text = FASTER.replace("F(in", "wide(0) + F(in")
    lowering = lower(shared, candidate(shared, {"twice": text}, added=added))
    m = lowering.marker
    assert [(a.name, a.where) for a in lowering.added][:2] == [(f"wide{m}", "before"), (f"twice{m}", "after")]
    assert _added(lowering, "wide") == f"__device__ int wide{m}(int x) {{ return wide{m}(x - 1); }}"
    assert f"wide{m}(0) + F(in" in _added(lowering, "twice")


TEMPLATE_LAUNCHER = """\
//! twice device kernel
template <typename T>
__global__ void twice(T* out, const T* in, int d) {}

//! run host
template <typename T>
void run(T* out, const T* in, int rows, int width, dim3 block) {
  if (rows == 0) return;
  if (width > 1)
    twice<<<rows, block, 0, nullptr>>>(out, in, width);
  else
    other(out);
}

//! op host
void op(float* out, const float* in, int rows, int width) { run<float>(out, in, rows, width, dim3(32)); }
"""
TWICE = "template <typename T>\n__global__ void twice(T* out, const T* in, int d) { out[0] = in[0]; }"


def test_a_template_launcher_between_is_copied(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    slice = cut({"a.cu": TEMPLATE_LAUNCHER}, "op", kernel="twice", parameters=PARAMETERS, templates=(("T", "type"),))
    step = LaunchStep(kernel="twice", grid="ceil_div(grid_x, 2)", block="min(d, d / sizeof(T), 1024)")
    lowering = lower(slice, candidate(slice, {"twice": TWICE}, plan=_plan(Variant(steps=(step,)))))
    m = lowering.marker
    launcher = _squeezed(_added(lowering, "run"))
    # The launch is the body of an "if": nothing may stand before it. The block's y and z are not known here.
    assert "if (width > 1) twice" in launcher
    x = "std::min<int64_t>(std::min<int64_t>(width, width / sizeof(*out)), 1024)"
    wanted = f"twice{m}<<<(dim3(rows).x + 1) / 2, dim3({x}, dim3(block).y, dim3(block).z), 0, nullptr>>>(out"
    assert wanted.replace(" ", "") in launcher.replace(" ", "")
    assert lowering.replaced[0].text.startswith("void op(") and f"run{m}<float>(" in lowering.replaced[0].text


def test_a_launch_in_the_host_function_itself_is_edited_in_place(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! twice device kernel\n__global__ void twice(float* out, const float* in, int d) {}\n\n"
        "//! op host\nvoid op(float* out, const float* in, int rows, int width) {\n"
        "  const int threads = 128;\n  twice<<<rows, threads>>>(out, in, width);\n}\n"
    )
    slice = cut({"a.cu": text}, "op", kernel="twice", parameters=PARAMETERS, instantiations=("twice",))
    step = LaunchStep(kernel="twice", block="max(32, min(ceil_div(d, 4), block_x))")
    new = "__global__ void twice(float* out, const float* in, int d) { out[0] = 1; }"
    lowering = lower(slice, candidate(slice, {"twice": new}, plan=_plan(Variant(steps=(step,)))))
    m = lowering.marker
    # "threads" is taken, so the new variable has another name.
    assert lowering.replaced[0].text == (
        "void op(float* out, const float* in, int rows, int width) {\n"
        "  const int threads = 128;\n"
        "  const int64_t block_size =\n"
        "      std::max<int64_t>(32, std::min<int64_t>((width + 3) / 4,\n"
        "                                              dim3(threads).x));\n"
        f"  twice{m}<<<rows, block_size>>>(out, in, width);\n}}"
    )
    assert lowering.instantiations == (f"twice{m}",)


def test_overloads_and_specialisations_of_a_copied_name_come_along(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! Load either\ntemplate <typename T> struct Load { T x; };\n\n"
        "//! Load either\ntemplate <> struct Load<float> { float x; };\n\n"
        "//! k device kernel\n__global__ void k(Load<float>* p) {}\n\n"
        "//! op host\nvoid op(Load<float>* p) { k<<<1, 1>>>(p); }\n"
    )
    slice = cut({"a.cu": text}, "op", kernel="k", parameters=(("p", "Load<float> *"),))
    first = slice.declarations[0]
    new = Replacement(declaration=first.id, text="template <typename T> struct Load { T x, y; };")
    lowering = lower(slice, candidate(slice, {}).model_copy(update={"replaced": (new,)}))
    copies = [a.text for a in lowering.added]
    assert sum(f"struct Load{lowering.marker}" in text for text in copies) == 2
    assert f"Load{lowering.marker}<float>* p" in lowering.replaced[0].text


def test_the_header_that_all_ops_share_is_left_to_them(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    header = "//! halve device\ninline __device__ float halve(float x) { return x / 2.0f; }\n\n"
    unit = (
        "//! k device kernel\n__global__ void k(float* p) { p[0] = halve(p[0]); }\n\n"
        "//! op host\nvoid op(float* p) { k<<<1, 1>>>(p); }\n"
    )
    slice = cut({"math.cuh": header, "a.cu": unit}, "op", kernel="k", parameters=(("p", "float *"),))
    new = "inline __device__ float halve(float x) { return x * 0.5f; }"
    lowering = lower(slice, candidate(slice, {"halve": new}))
    m = lowering.marker
    assert [(a.anchor.split(":")[0], a.name) for a in lowering.added] == [("math.cuh", f"halve{m}"), ("a.cu", f"k{m}")]
    assert f"p[0] = halve{m}(p[0])" in _added(lowering, "k")


def test_the_record_of_a_launch_tells_which_kernel_a_variable_stands_for(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! twice device kernel\n__global__ void twice(float* out, const float* in, int d) {}\n\n"
        "//! op host\nvoid op(float* out, const float* in, int d) {\n"
        "  auto run = twice;\n  run<<<d, 8>>>(out, in, d);\n}\n"
    )
    slice = cut({"a.cu": text}, "op", kernel="twice", parameters=PARAMETERS)
    host = slice.declarations[1]
    place = host.extent.start + host.text.index("<<<")
    launch = Launch(
        kernel="twice", host_function="op", file="a.cu", offset=place, line=1, style="chevrons", grid="d", block="8"
    )
    slice = slice.model_copy(update={"launches": (launch,)})
    plan = _plan(Variant(steps=(LaunchStep(kernel="twice", block="4"),)))
    lowering = lower(slice, candidate(slice, {}, plan=plan))
    assert f"auto run = twice{lowering.marker};\n  run<<<d, 4>>>(out, in, d);" in lowering.replaced[0].text


def test_each_kernel_of_an_op_gets_its_own_step(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! a device kernel\n__global__ void a(float* p, int n) {}\n\n"
        "//! b device kernel\ntemplate <typename T>\n__global__ void b(const T* __restrict__ q, int m) {}\n\n"
        "//! op host\nvoid op(float* p, int x, int y) {\n  a<<<x, 8>>>(p, x);\n  b<float><<<y, 8>>>(p, y);\n}\n"
    )
    slice = cut(
        {"a.cu": text}, "op", kernel="a", parameters=(("p", "float *"), ("n", "int")), instantiations=("a", "b<float>")
    )
    steps = (LaunchStep(kernel="a", block="n"), LaunchStep(kernel="b", grid="m / sizeof(T)"))
    lowering = lower(slice, candidate(slice, {}, plan=_plan(Variant(steps=steps))))
    m = lowering.marker
    assert f"  a{m}<<<x, x>>>(p, x);\n  b{m}<float><<<y / sizeof(float), 8>>>(p, y);" in lowering.replaced[0].text
    assert lowering.instantiations == (f"a{m}", f"b{m}<float>")


def test_without_a_host_function_the_kernels_that_lead_to_the_change_are_copied(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! one device\n__device__ int one() { return 1; }\n\n"
        "//! k device kernel\n__global__ void k(int* p) { p[0] = one(); }\n\n"
        "//! other device kernel\n__global__ void other(int* p) {}\n"
    )
    slice = cut({"a.cu": text}, None, kernel="k", parameters=(("p", "int *"),), instantiations=("k",))
    lowering = lower(slice, candidate(slice, {"one": "__device__ int one() { return 2; }"}))
    assert [a.name for a in lowering.added] == [f"one{lowering.marker}", f"k{lowering.marker}"]
    assert lowering.instantiations == (f"k{lowering.marker}",)


CLASS = """\
//! k device kernel
template <typename T>
__global__ void k(T* p, int n) {}

//! Ops host
template <typename T, int N>
struct Ops {
  static constexpr auto kernel = k<T>;
  static void launch(T* p, int n) { LaunchKernel(n, N, dev)(kernel, p, n); }
  /// In place.
  static void run(T* p, const std::string& name) {
    launch(p, 1);
  }
  static void run_twice(T* p) { launch(p, 2); }
};
"""
K_NEW = "template <typename T>\n__global__ void k(T* p, int n) { p[0] = n; }"


def test_a_class_with_other_ways_in_is_copied_and_one_function_led_to_the_copy(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    slice = cut({"a.cuh": CLASS}, "Ops::run", kernel="k", op="run")
    lowering = lower(slice, candidate(slice, {"k": K_NEW}))
    m = lowering.marker
    assert [(a.name, a.where) for a in lowering.added] == [(f"k{m}", "after"), (f"Ops{m}", "before")]
    assert f"static constexpr auto kernel = k{m}<T>;" in _added(lowering, "Ops")
    (host,) = lowering.replaced
    before, after = CLASS[CLASS.index("template <typename T, int N>") :].strip().split("    launch(p, 1);\n")
    assert host.text == f"{before}    return Ops{m}<T, N>::run(p, name);\n{after}"


def test_a_class_with_one_way_in_is_edited_in_place(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = CLASS.replace("  static void run_twice(T* p) { launch(p, 2); }\n", "")
    slice = cut({"a.cuh": text}, "Ops::run", kernel="k", op="run")
    lowering = lower(slice, candidate(slice, {"k": K_NEW}))
    assert [a.name for a in lowering.added] == [f"k{lowering.marker}"]
    assert f"static constexpr auto kernel = k{lowering.marker}<T>;" in lowering.replaced[0].text


def _fails(slice: Slice, change: Candidate, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        lower(slice, change)
    assert words in str(caught.value)


def test_what_cant_be_lowered_is_named(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    host = shared.declarations[-1].id
    _fails(shared, candidate(shared, {"first": "void first() {}"}), "host code")
    added = Addition(anchor=host, name="scale", text="int scale;")
    _fails(shared, candidate(shared, {}, added=(added,)), "already")
    unused = candidate(shared, {"twice": FASTER}, added=(Addition(anchor=host, name="spare", text="int spare;"),))
    _fails(shared, unused, "spare")
    elsewhere = _plan(Variant(steps=(LaunchStep(kernel="nowhere"),)))
    _fails(shared, candidate(shared, {"twice": FASTER}, plan=elsewhere), "nowhere")
    unknown = _plan(Variant(steps=(LaunchStep(kernel="twice", block="size"),)))
    _fails(shared, candidate(shared, {"twice": FASTER}, plan=unknown), "'size'")


def test_a_launch_that_is_no_chevron_keeps_its_geometry(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! k device kernel\n__global__ void k(float* p) {}\n\n"
        "//! op host\nvoid op(float* p) { LaunchKernel(1, 32, device)(k, p); }\n"
    )
    slice = cut({"a.cu": text}, "op", kernel="k", parameters=(("p", "float *"),))
    new = {"k": "__global__ void k(float* p) { p[0] = 1; }"}
    lowering = lower(slice, candidate(slice, new))
    assert f"LaunchKernel(1, 32, device)(k{lowering.marker}, p);" in lowering.replaced[0].text
    _fails(slice, candidate(slice, new, plan=_plan(Variant(steps=(LaunchStep(kernel="k", block="64"),)))), "<<<")


def test_a_change_that_the_op_does_not_reach_is_refused(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = "//! spare device\n__device__ int spare() { return 1; }\n\n" + TEMPLATE_LAUNCHER
    slice = cut({"a.cu": text}, "op", kernel="twice", parameters=PARAMETERS)
    _fails(slice, candidate(slice, {"spare": "__device__ int spare() { return 2; }"}), "doesn't reach")


def test_a_kernel_made_by_a_macro_cant_be_copied_by_name(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! MAKE macro\n#define MAKE(NAME) __global__ void NAME##_rows(float* p) { p[0] = one(); }\n\n"
        "//! one device\n__device__ float one() { return 1; }\n\n"
        "//! clip_rows device kernel\nMAKE(clip)\n\n"
        "//! op host\nvoid op(float* p) { clip_rows<<<1, 1>>>(p); }\n"
    )
    slice = cut({"a.cu": text}, "op", kernel="clip_rows", parameters=(("p", "float *"),))
    _fails(slice, candidate(slice, {"one": "__device__ float one() { return 2; }"}), "can't be copied")
    spelled = "__global__ void clip_rows(float* p) { p[0] = 2; }"
    assert lower(slice, candidate(slice, {"clip_rows": spelled})).replaced, "spelled out it can"


def test_the_marker_follows_the_change_alone(shared, candidate) -> None:  # type: ignore[no-untyped-def]
    one = candidate(shared, {"twice": FASTER}, strategy="a")
    assert marker_of(one) == marker_of(one.model_copy(update={"id": "other", "strategy": "b", "author": "x"}))
    assert marker_of(one) != marker_of(candidate(shared, {"twice": FASTER + " "}))


def _squeezed(text: str) -> str:
    """One line, without a macro's backslashes and without breaks after an opening bracket."""
    return " ".join(text.replace("\\\n", "\n").split()).replace("( ", "(")
