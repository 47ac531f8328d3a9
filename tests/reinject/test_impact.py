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
