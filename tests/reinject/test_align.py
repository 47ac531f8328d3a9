"""Aligned lines after names became longer."""

from __future__ import annotations

import pytest

from astra_integrate.reinject.align import realigned
from astra_integrate.reinject.rename import Renamed, rename


def _renamed(text: str, old: str, new: str) -> str:
    return realigned(text, rename(text, [Renamed(old, new)]))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a,\n  b);", "f_longer(a,\n         b);"),
        ("x = f(g(a,\n        b),\n      c);", "x = f_longer(g(a,\n               b),\n             c);"),
        ("f(\n    a,\n    b);", "f_longer(\n    a,\n    b);"),
        ("if (x) {\n  f(1);\n}", "if (x) {\n  f_longer(1);\n}"),
        ("f(a,  // why\n  b);", "f_longer(a,  // why\n         b);"),
        ("g(a,\n  f);", "g(a,\n  f_longer);"),
        ("f(a,\n  b);\nh(c,\n  d);", "f_longer(a,\n         b);\nh(c,\n  d);"),
    ],
)
def test_lines_follow_their_bracket(before: str, after: str) -> None:
    assert _renamed(before, "f", "f_longer") == after


def test_where_they_would_get_too_long_the_content_starts_on_a_line_of_its_own() -> None:
    before = "void run(Tensor& the_output_tensor, const Tensor& first_input,\n         const Tensor& second_input);"
    assert _renamed(before, "run", "run_with_a_long_new_name") == (
        "void run_with_a_long_new_name(\n"
        "    Tensor& the_output_tensor, const Tensor& first_input,\n"
        "    const Tensor& second_input);"
    )


def test_a_long_line_that_no_new_name_has_moved_stays() -> None:
    long = "call(" + "argument, " * 9 + "\n     last);\nf(x);"
    assert _renamed(long, "f", "f_longer") == long.replace("f(x)", "f_longer(x)")


def test_in_a_macro_the_new_line_has_its_backslash() -> None:
    before = "#define L(x)  \\\n  run(aaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb, \\\n      x);"
    after = _renamed(before, "run", "run_with_a_long_new_name")
    assert all(line.endswith("\\") for line in after.split("\n")[:-1])
    assert "run_with_a_long_new_name( \\\n      aaaa" in after
