"""Which ops an edit reaches."""

from __future__ import annotations

from astra_integrate.records import Binding, Lowering, Replacement, Slice
from astra_integrate.reinject.impact import definitions, impact

UNIT = """\
//! k device kernel
__global__ void k(float* p) {}

//! first host
void first(float* p) { k<<<1, 1>>>(p); }

namespace other { namespace {
void second(float* p) { k<<<2, 1>>>(p); }  // not first
} }

#define THROUGH(x) \\
  do { first(x); } while (0)
template <typename T>
void third(T* p) { THROUGH(p); }
extern "C" {
void fourth(float* p) { third(p); }
}
"""


def _bindings(*names: str) -> tuple[Binding, ...]:
    return tuple(Binding(op=f"op_{name}", namespace="_C", host_function=name) for name in names)


def _impact(slice: Slice, *names: str) -> tuple[str, ...]:
    host = next(d for d in slice.declarations if d.names == ("first",))
    lowering = Lowering(
        candidate="c", marker="_m", replaced=(Replacement(declaration=host.id, text="void first() {}"),)
    )
    return impact(slice, lowering, _bindings(*names)).ops


def test_an_op_of_the_same_file_that_only_shares_the_kernel_is_not_reached(cut) -> None:  # type: ignore[no-untyped-def]
    slice = cut({"a.cu": UNIT}, "first", kernel="k", op="op_first")
    assert _impact(slice, "first", "other::second") == ("op_first",)


def test_callers_of_the_edited_function_are_reached_through_macros_and_functions(cut) -> None:  # type: ignore[no-untyped-def]
    slice = cut({"a.cu": UNIT}, "first", kernel="k", op="op_first")
    assert _impact(slice, "first", "second", "third", "fourth") == ("op_first", "op_fourth", "op_third")


def test_two_ops_on_one_host_function_are_both_its_own(cut) -> None:  # type: ignore[no-untyped-def]
    slice = cut({"a.cu": UNIT}, "first", kernel="k", op="op_first")
    again = Binding(op="op_again", namespace="_C", host_function="first")
    host = slice.declarations[-1]
    lowering = Lowering(
        candidate="c", marker="_m", replaced=(Replacement(declaration=host.id, text="void first() {}"),)
    )
    found = impact(slice, lowering, (*_bindings("first", "second"), again))
    assert found.ops == ("op_again", "op_first") and found.alone
    assert not impact(slice, lowering, _bindings("first", "third")).alone


def test_definitions_of_a_unit() -> None:
    names = [sorted(defined) for defined, _ in definitions(UNIT.replace("//! ", "// "))]
    assert names == [["THROUGH"], ["k"], ["first"], ["second"], ["third"], ["fourth"]]


CLASS = """\
//! k device kernel
__global__ void k(float* p) {}

//! Ops host
struct Ops {
  static void launch(float* p) { k<<<1, 1>>>(p); }
  static void run(float* p) { launch(p); }
  static void run_safe(float* p) { if (p) run(p); }
  static void run_twice(float* p) { launch(p); launch(p); }
};
"""


def test_of_a_class_only_the_functions_that_lead_to_the_edit_are_reached(cut) -> None:  # type: ignore[no-untyped-def]
    slice = cut({"a.cuh": CLASS}, "Ops::run", kernel="k", op="run")
    host = slice.declarations[-1]

    def reached(new: str) -> tuple[str, ...]:
        lowering = Lowering(candidate="c", marker="_m", replaced=(Replacement(declaration=host.id, text=new),))
        names = ("run", "run_safe", "run_twice")
        bindings = tuple(Binding(op=name, namespace="", host_function=f"Ops::{name}") for name in names)
        return impact(slice, lowering, bindings).ops

    assert reached(host.text.replace("{ launch(p); }", "{ other(p); }")) == ("run", "run_safe")
    assert reached(host.text.replace("k<<<1, 1>>>", "k_m<<<1, 1>>>")) == ("run", "run_safe", "run_twice")
    assert reached(host.text.replace("struct Ops {", "struct Ops {\n  int x;")) == ("run", "run_safe", "run_twice")


def test_a_function_of_the_same_name_in_another_file_is_another(cut) -> None:  # type: ignore[no-untyped-def]
    slice = cut({"a.cu": UNIT}, "first", kernel="k", op="op_first")
    host = slice.declarations[-1]
    lowering = Lowering(
        candidate="c", marker="_m", replaced=(Replacement(declaration=host.id, text="void first() {}"),)
    )
    there = Binding(op="there", namespace="", host_function="first", host_file="b.cu")
    here = Binding(op="here", namespace="", host_function="first", host_file="a.cu")
    assert impact(slice, lowering, (there, here)).ops == ("here", "op_first")
