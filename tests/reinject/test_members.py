"""Classes as host code."""

from __future__ import annotations

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.records import Declaration, Extent
from astra_integrate.reinject.members import changed_members, entries, led_to, members

TEXT = """\
template <typename T, int N = (1 > 0 ? 4 : 8), typename... Rest>
struct Ops : Base<T> {
 public:
  using fn_t = decltype(&k<T, false>);
  int x{3}, y = f(2);
  struct Inner { int a; static void hidden() {} };
  template <bool B = false>
  static constexpr fn_t pick = k<T, B>;
  static_assert(N > 0, "struct { static void fake() {} }");

  template <bool B, int M = sizeof(T)>
  static std::enable_if_t<(M > 1), fn_t> select(const std::map<int, int>& m) {
    if (B) { return pick<B>; }
    return nullptr;
  }
  static void launch(T* p, int (*callback)(int), float limit = 0.0f) { select<true>({})(p); }
  static void run(T* p) { launch(p, nullptr); }
  static void other(T* p) noexcept { launch(p, nullptr, 1.0f); }
  void plain() const { }
  static void declared_only(int);
};"""


def _declaration(text: str = TEXT) -> Declaration:
    extent = Extent(file="a.cuh", start=0, end=len(text), bytes_digest="")
    return Declaration(id="Ops", names=("Ops",), kind="", role="host", order=0, extent=extent, text=text)


def test_functions_with_their_parameters_and_bodies() -> None:
    found = {m.name: m for m in members(TEXT) if m.body}
    assert list(found) == ["select", "launch", "run", "other", "plain"]
    assert found["launch"].parameters == ("p", "callback", "limit")
    start, end = found["run"].body or (0, 0)
    assert TEXT[start:end] == " launch(p, nullptr); "
    assert [name for name, m in found.items() if m.is_static] == ["select", "launch", "run", "other"]
    assert [name for name, m in found.items() if m.is_template] == ["select"]


def test_ways_in_are_the_static_functions_that_one_does_not_lead_to() -> None:
    assert entries(TEXT, "run") == ("other",)
    assert entries(TEXT, "select") == ("launch", "run", "other")


def test_one_function_led_elsewhere() -> None:
    new = led_to(_declaration(), "run", "Ops_m")
    assert new == TEXT.replace(
        "run(T* p) { launch(p, nullptr); }", "run(T* p) {\n    return Ops_m<T, N, Rest...>::run(p);\n  }"
    )
    assert changed_members(TEXT, new) == {"run"}


@pytest.mark.parametrize("function", ["select", "plain", "missing", "declared_only"])
def test_what_cant_be_led_elsewhere(function: str) -> None:
    with pytest.raises(BadInput, match=function):
        led_to(_declaration(), function, "Ops_m")


def test_a_change_outside_of_functions_is_no_change_of_functions() -> None:
    assert changed_members(TEXT, TEXT.replace("int x{3}", "int x{4}")) is None
    assert changed_members(TEXT, TEXT.replace(": Base<T>", "")) is None
    assert changed_members("void f() {}", "void f() { }") is None


def test_text_that_is_no_class_has_no_members() -> None:
    assert members("void f() { struct A {}; }") == members("struct A;") == ()
