"""Launch statements under a plan: variables, blocks, dimensions."""

from __future__ import annotations

from astra_integrate.records import LaunchPlan, LaunchStep, Variant
from astra_integrate.reinject.lower import lower

HOST = "//! k device kernel\n__global__ void k(float* p, int n) {}\n\n"
BOUNDED = LaunchPlan(variants=(Variant(steps=(LaunchStep(kernel="k", block="min(ceil_div(n, 4), 1024)"),)),))
BOUND = "std::min<int64_t>((n + 3) / 4, 1024)"


def _launcher(cut, candidate, text: str, plan: LaunchPlan, name: str = "") -> str:  # type: ignore[no-untyped-def]
    """The text of the launcher of a kernel ``k(float* p, int n)``, squeezed, with ``_m`` for the marker."""
    slice = cut({"a.cu": HOST + text}, "op", kernel="k", parameters=(("p", "float *"), ("n", "int")))
    lowering = lower(slice, candidate(slice, {}, plan=plan))
    (found,) = [a.text for a in lowering.added if a.name.startswith(name)] if name else [lowering.replaced[-1].text]
    return " ".join(found.replace(lowering.marker, "_m").replace("\\\n", "\n").split()).replace("( ", "(")


def test_a_block_for_a_macro_that_leaves_the_semicolon_to_its_user_is_one_statement(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = (
        "//! GO macro\n#define GO(p, n) k<<<1, 128>>>(p, n)\n\n"
        "//! op host\nvoid op(float* p, int n) { if (n) GO(p, n); else stop(); }\n"
    )
    plan = LaunchPlan(variants=(Variant(when="n > 4", steps=(LaunchStep(kernel="k"),)),))
    assert _launcher(cut, candidate, text, plan, "GO").endswith(
        "do { if (n > 4) { k_m<<<1, 128>>>(p, n); } else { k<<<1, 128>>>(p, n); } } while (0)"
    )
    assert f"k_m<<<1, {BOUND}>>>(p, n)" in _launcher(cut, candidate, text, BOUNDED, "GO"), "no variable either"


def test_in_a_switch_no_variable_is_made_that_a_label_would_jump_over(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = "//! op host\nvoid op(float* p, int n) { switch (n) { case 1: f(); k<<<1, 128>>>(p, n); case 2: g(); } }\n"
    assert f"f(); k_m<<<1, {BOUND}>>>(p, n);" in _launcher(cut, candidate, text, BOUNDED)


def test_a_dim3_that_gets_a_y_later_keeps_it(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    text = "//! op host\nvoid op(float* p, int n) { dim3 b(n);%s k<<<1, b>>>(p, n); }\n"
    assert "k_m<<<1, threads>>>" in _launcher(cut, candidate, text % "", BOUNDED)
    assert "k_m<<<1, dim3(threads, b.y, b.z)>>>" in _launcher(cut, candidate, text % " b.y = 2;", BOUNDED)
    text = text.replace("b(n)", "b(n, 2)")
    assert "k_m<<<1, dim3(threads, b.y, b.z)>>>" in _launcher(cut, candidate, text % "", BOUNDED)


def test_two_launches_in_one_block_get_variables_of_their_own(cut, candidate) -> None:  # type: ignore[no-untyped-def]
    launch = "k<<<1, 128>>>(p, n); "
    text = f"//! op host\nvoid op(float* p, int n) {{ {launch}{launch}{{ {launch}}} }}\n"
    found = _launcher(cut, candidate, text, BOUNDED)
    assert found.count("const int64_t threads =") == 2, "an inner block is another scope"
    assert found.count("const int64_t block_size =") == 1
