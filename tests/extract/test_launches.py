"""Given a small CUDA source, where its kernels are launched, with what geometry, and who reaches them."""

from __future__ import annotations

import pytest

from astra_integrate.extract.launches import launches

MACROS = """\
template <typename T, int N> __global__ void scale(T* x, T g) { x[threadIdx.x] *= g; }

#define INNER(N, ...)                            \\
  scale<float, N><<<dim3((rows + N - 1) / N),    \\
                    block, 0, stream>>>(__VA_ARGS__)
#define OUTER(...)                   \\
  if (rows % 4 == 0) {               \\
    INNER(4, __VA_ARGS__);           \\
  } else {                           \\
    INNER(1, __VA_ARGS__);           \\
  }
#define WITH(...) [&] { __VA_ARGS__ }()

void nested(float* x, float g, int rows, dim3 block, cudaStream_t stream) { OUTER(x, g); }
void in_lambda(float* x, float g, int rows) {
  WITH(scale<float, 2><<<rows, 64>>>(x, g););
}
"""


def seen_in(parsed):
    return launches(parsed.found, parsed.own)


def only(parsed, **wanted):
    found = [
        launch
        for launch in seen_in(parsed).launches.values()
        if all(getattr(launch, name) == value for name, value in wanted.items())
    ]
    assert len(found) == 1, found
    return found[0]


def test_a_launch_in_nested_macros_is_keyed_by_its_chevrons(read_source):
    launch = only(read_source(MACROS), host_function="nested")
    assert MACROS.encode()[launch.offset : launch.offset + 3] == b"<<<"
    assert launch.macro == "INNER"
    assert launch.grid == "dim3((rows + N - 1) / N)"
    assert (launch.block, launch.shared_bytes, launch.stream) == ("block", "0", "stream")
    assert launch.arguments == ("__VA_ARGS__",)
    assert launch.callee == "scale<float, N>"


def test_all_instantiations_of_a_macros_uses_are_seen(read_source):
    launch = only(read_source(MACROS), host_function="nested")
    assert launch.instantiations == ("scale<float, 1>", "scale<float, 4>")


def test_a_launch_passed_through_a_macro_lies_where_it_is_written(read_source):
    launch = only(read_source(MACROS), host_function="in_lambda")
    assert launch.macro is None
    assert launch.line == MACROS[: MACROS.index("<<<rows, 64")].count("\n") + 1
    assert (launch.grid, launch.block, launch.shared_bytes, launch.stream) == ("rows", "64", "0", "0")


def test_a_launch_in_a_template_has_its_kernel_though_not_its_types(read_source):
    source = """\
namespace deep { template <typename T> __global__ void put(T* x) { x[0] = T(0); } }
template <typename T> void launch(T* x) { deep::put<T><<<1, 32>>>(x); }
"""
    launch = only(read_source(source))
    assert (launch.kernel, launch.instantiations) == ("deep::put", ())


def test_a_kernel_whose_name_is_a_macros_parameter(read_source):
    source = """\
__global__ void first(float* x) { x[0] = 1; }
__global__ void second(float* x) { x[0] = 2; }
#define RUN(KERNEL) KERNEL<<<1, 32>>>(x)
void host(float* x) { RUN(first); RUN(second); }
"""
    found = seen_in(read_source(source)).launches.values()
    assert {launch.kernel for launch in found} == {"first", "second"}
    assert len({launch.offset for launch in found}) == 1


def test_function_pointers_are_followed_to_every_kernel_they_may_be(read_source):
    source = """\
template <int N> __global__ void walk(float* x) { x[N] = 0; }
void host(float* x, bool wide) {
  auto kernel = walk<1>;
  if (wide) kernel = walk<4>;
  kernel<<<2, 64>>>(x);
}
"""
    launch = only(read_source(source))
    assert launch.kernel == "walk"
    assert launch.instantiations == ("walk<1>", "walk<4>")
    assert launch.callee == "kernel"


def test_a_launch_of_a_parameter_has_the_kernels_that_are_passed(read_source):
    source = """\
__global__ void one(float* x) { x[0] = 1; }
__global__ void two(float* x) { x[0] = 2; }
template <typename K> void start(K kernel, float* x) { kernel<<<1, 32>>>(x); }
void host(float* x) { start(one, x); start(two, x); }
"""
    assert {launch.kernel for launch in seen_in(read_source(source)).launches.values()} == {"one", "two"}


def test_kernels_passed_on_through_a_lambda_and_a_helper_are_found(read_source):
    source = """\
template <int N> __global__ void walk(float* x) { x[N] = 0; }
template <typename K> void start(K kernel, float* x) { kernel<<<1, 32>>>(x); }
void host(float* x, bool wide) {
  auto launch = [&](auto kernel) { start(kernel, x); };
  if (wide) {
    launch(walk<4>);
  } else {
    launch(walk<1>);
  }
}
"""
    launch = only(read_source(source))
    assert (launch.kernel, launch.host_function) == ("walk", "start")
    assert launch.instantiations == ("walk<1>", "walk<4>")


EX = """\
template <typename T> __global__ void tile(T* x, int n) { x[n] = T(1); }
template <typename T> void host(T* x, int n, cudaStream_t s) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(n, 2);
  config.blockDim = 128;
  config.dynamicSmemBytes = n * sizeof(T);
  config.stream = s;
  cudaLaunchKernelEx(&config, tile<T>, x, n);
}
"""


def test_launch_ex_takes_its_geometry_from_the_configuration(read_source):
    launch = only(read_source(EX))
    assert (launch.kernel, launch.style) == ("tile", "launch_ex")
    assert (launch.grid, launch.block) == ("dim3(n, 2)", "128")
    assert (launch.shared_bytes, launch.stream) == ("n * sizeof(T)", "s")
    assert launch.arguments == ("x", "n")


OBJECT = """\
struct Launcher {
  dim3 grid, block;
  cudaStream_t stream;
  Launcher(dim3 g, dim3 b, cudaStream_t s) : grid(g), block(b), stream(s) {}
  Launcher& chained(bool) { return *this; }
  template <typename... P, typename... A>
  void operator()(void (*kernel)(P...), A... a) const { kernel<<<grid, block, 0, stream>>>(a...); }
};
template <int N> __global__ void rows(float* x) { x[N] = 1; }
template <int N> static constexpr auto chosen = rows<N>;
struct Op {
  static auto pick(bool wide) { return wide ? chosen<4> : chosen<1>; }
  template <typename T> static void run(T* x, int n, cudaStream_t s) {
    const auto kernel = pick(n > 4);
    Launcher(n / 2, 256, s).chained(true)(kernel, x);
  }
};
"""


def test_a_launch_object_called_with_a_kernel_behind_a_variable_template(read_source):
    launch = only(read_source(OBJECT), style="launch_object")
    assert (launch.kernel, launch.host_function) == ("rows", "Op::run")
    assert (launch.grid, launch.block, launch.stream) == ("n / 2", "256", "s")
    assert launch.arguments == ("x",)


def test_who_mentions_what_leads_from_a_host_function_to_its_kernels(read_source):
    mentions = {function.name: function.mentions for function in seen_in(read_source(OBJECT)).functions}
    assert "Op::pick" in mentions["Op::run"]
    assert "rows" in mentions["Op::pick"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_and_odd_bytes_move_no_offset(read_source, end):
    source = b"// \xfc\xe9" + end + b"__global__ void k(float* x) { x[0] = 1; }" + end
    source += b"void host(float* x) {" + end + b"  k<<<1, \\" + end + b"      32>>>(x);" + end + b"}" + end
    launch = only(read_source({"unit.cu": source}))
    assert source[launch.offset : launch.offset + 3] == b"<<<"
    assert (launch.line, launch.grid, launch.block) == (4, "1", "32")


def test_a_method_that_names_its_class_does_not_reach_all_its_members(read_source):
    source = """\
__global__ void one(float* x) { x[0] = 1; }
__global__ void two(float* x) { x[0] = 2; }
struct Both {
  static void first(float* x) { one<<<1, 1>>>(x); }
  static void second(float* x) { Both::third(x); }
  static void third(float* x) { two<<<1, 1>>>(x); }
};
"""
    mentions = {function.name: function.mentions for function in seen_in(read_source(source)).functions}
    assert mentions["Both::second"] == {"Both::third"}


def test_static_members_and_aliases_lead_on(read_source):
    source = """\
template <int N> __global__ void rows(float* x) { x[N] = 1; }
template <int N> struct Wide {
  static constexpr auto kernel = rows<N>;
  static void run(float* x) { kernel<<<1, 32>>>(x); }
};
template <int N> using Chosen = Wide<N + 1>;
"""
    seen = seen_in(read_source(source))
    mentions = {function.name: function.mentions for function in seen.functions}
    assert "Wide::kernel" in mentions["Wide::run"]
    assert mentions["Wide::kernel"] == {"rows"}
    assert "Wide" in mentions["Chosen"]
    assert [launch.kernel for launch in seen.launches.values()] == ["rows"]
