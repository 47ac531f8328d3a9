"""Source as text: what is a comment, where a bracket closes, which function a ``__global__`` belongs to."""

from __future__ import annotations

import pytest

from astra_integrate.extract import cpp_text


def test_blanking_keeps_every_offset():
    text = "int a; // b\r\n/* c\n d */ char* s = \"/* no */\"; char q = '\"'; int n = 1'000; // end"
    plain = cpp_text.blank(text)
    assert len(plain) == len(text)
    assert plain.count("\n") == text.count("\n")
    assert '"/* no */"' in plain
    assert "1'000" in plain
    assert "end" not in plain and " d " not in plain
    assert "no" not in cpp_text.blank(text, strings=True)


def test_a_raw_string_is_one_literal():
    text = 'auto s = R"x(a " // b)x"; int kept;'
    assert cpp_text.blank(text, strings=True).endswith("int kept;")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, b", ["a", "b"]),
        ("f(a, b), c", ["f(a, b)", "c"]),
        ("std::max<int, 2>(a), b", ["std::max<int, 2>(a)", "b"]),
        ('"x, y", z', ['"x, y"', "z"]),
        ("", []),
    ],
)
def test_splitting_at_commas_outside_of_brackets(text, parts):
    assert cpp_text.split_top(text) == parts


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("__global__ void f(int a) {}", "f"),
        ("__global__ void __launch_bounds__(256, 2) g(int a) {}", "g"),
        ("__global__ std::enable_if_t<(N > 1) && is<T>::value> h(T* x) {}", "h"),
        ("static __global__ LAUNCH_BOUNDS(4) void k(T* x) {}", "k"),
        ("__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(N) c() {}", "c"),
        ("#define X __global__ __launch_bounds__(1)\nint a;", ""),
    ],
)
def test_the_name_after_global(text, name):
    assert [mention.name for mention in cpp_text.global_mentions(cpp_text.blank(text, strings=True))] == [name]


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        ("void f(int a) { g(); }", True),
        ("void f(int a);", False),
        ("void g() { f(1); }", False),
        ("void g() { if (f(1)) { } }", False),
        ("auto f(int a) -> std::vector<int> { return {}; }", True),
        ("int x() { return f(1); }", False),
        ("void ns::f(Tensor& a,\n       std::optional<Tensor> b) {\n}", True),
    ],
)
def test_definitions_are_told_from_calls(text, defined):
    assert bool(cpp_text.definitions(cpp_text.blank(text, strings=True), "f")) is defined


def test_rocm_branches_are_blanked_and_the_others_kept():
    text = (
        "#ifdef USE_ROCM\nA\n#else\nB\n#endif\n"
        "#ifndef USE_ROCM\nC\n#else\nD\n#endif\n"
        "#if defined(USE_ROCM)\nE\n#endif\n"
        "#if X\nF\n#endif\n"
    )
    plain = cpp_text.without_rocm(text)
    assert len(plain) == len(text)
    kept = [letter for letter in "ABCDEF" if f"\n{letter}\n" in plain]
    assert kept == ["B", "C", "F"]


def test_nested_conditions_inside_a_rocm_branch_stay_blank():
    text = "#ifdef USE_ROCM\n#if Y\nA\n#else\nB\n#endif\n#endif\nC\n"
    plain = cpp_text.without_rocm(text)
    assert "A" not in plain and "B" not in plain and "C" in plain


def test_rocm_and_more_hides_its_branch_and_keeps_the_other():
    text = "#if defined(USE_ROCM) && defined(FAST)\nA\n#else\nB\n#endif\n#if defined(USE_ROCM) || X\nC\n#endif\n"
    plain = cpp_text.without_rocm(text)
    assert [letter for letter in "ABC" if f"\n{letter}\n" in plain] == ["B", "C"]
