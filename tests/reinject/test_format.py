"""Layout of generated code."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from astra_integrate.reinject.format import align_continuations, indented, tidy, wrapped


def test_backslashes_line_up_after_the_longest_line() -> None:
    assert (
        align_continuations("#define A(x) \\\n  long_name(x); \\\n  b") == "#define A(x)    \\\n  long_name(x); \\\n  b"
    )


def test_text_that_is_no_macro_stays() -> None:
    assert align_continuations("f(); \\\n g();") == "f(); \\\n g();"


def test_a_long_call_is_broken_under_its_bracket() -> None:
    line = "  launch_with_a_long_name(first_argument_of_it, second_argument_of_it, third_one);"
    assert wrapped(line, 80) == (
        "  launch_with_a_long_name(first_argument_of_it, second_argument_of_it,\n                          third_one);"
    )


def test_a_condition_is_broken_at_its_operators_not_inside_its_operands() -> None:
    line = "  if (is_aligned_marked<16>(gate) && is_aligned_marked<16>(up) && is_aligned_marked<16>(row)) {"
    assert wrapped(line, 80) == (
        "  if (is_aligned_marked<16>(gate) && is_aligned_marked<16>(up) &&\n      is_aligned_marked<16>(row)) {"
    )


def test_strings_and_commented_lines_are_not_broken() -> None:
    comment = "  f(a, b);  // " + "x " * 50
    assert wrapped(comment, 80) == comment
    literal = '  g("' + "a, " * 40 + '");'
    assert '"' + "a, " * 40 + '"' in wrapped(literal, 80)


def test_a_line_as_long_in_the_original_stays_and_wide_files_keep_their_width() -> None:
    long = "  call(" + ", ".join(["argument"] * 9) + ");"
    assert tidy(f"{long}\nshort", f"{long}\nshort") == f"{long}\nshort"
    assert tidy(long.replace("call", "cal2"), long) == long.replace("call", "cal2")


def test_a_macro_stays_one_macro() -> None:
    body = (
        "#define LAUNCH(KERNEL) \\\n  f<KERNEL<scalar_t>, another_template_argument>(an_argument, another_argument, 1);"
    )
    lines = tidy(body, "").split("\n")
    assert len(lines) == 3 and all(line.endswith("\\") for line in lines[:-1])
    assert len({len(line) for line in lines[:-1]}) == 1


def test_following_lines_are_indented_and_empty_ones_not() -> None:
    assert indented("a\nb\n\n  c", "  ") == "a\n  b\n\n    c"


@given(st.text(alphabet="ab ,;(){}<>=&|+*/\"'.\n", max_size=300), st.integers(20, 60))
def test_breaking_lines_changes_nothing_but_space(text: str, width: int) -> None:
    for line in text.split("\n"):
        assert "".join(wrapped(line, width).split()) == "".join(line.split())
