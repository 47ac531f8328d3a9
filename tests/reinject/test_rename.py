"""Before → after of identifier renaming."""

from __future__ import annotations

import pytest

from astra_integrate.reinject.rename import Renamed, mentions, rename, tokens

F = Renamed("f", "f_new", ("ns",))
MACRO = Renamed("F", "F_new", None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x)", "f_new(x)"),
        ("ns::f<T>(x)", "ns::f_new<T>(x)"),
        ("outer::ns :: f(x)", "outer::ns :: f_new(x)"),
        ("other::f(x)", "other::f(x)"),
        ("::f(x)", "::f(x)"),
        ("return ::f(x)", "return ::f(x)"),
        ("A<int>::f(x)", "A<int>::f(x)"),
        ("a.f(x) + p->f(y) + f(z)", "a.f(x) + p->f(y) + f_new(z)"),
        ("ff f1 _f f", "ff f1 _f f_new"),
        ("g(\"f\", 'f', f)  // f", "g(\"f\", 'f', f_new)  // f"),
        ("/* f */ f /* f", "/* f */ f_new /* f"),
        ('R"x(f)" )x" f', 'R"x(f)" )x" f_new'),
        ("1'000'000 + f", "1'000'000 + f_new"),
        ('"\\"f" f', '"\\"f" f_new'),
        ('#include "f"\nf', '#include "f"\nf_new'),
        ("#define G(x) f##x + x##f + f(x)", "#define G(x) f##x + x##f + f_new(x)"),
        ("#define G \\\n  f(1); \\\n  f(2)", "#define G \\\n  f_new(1); \\\n  f_new(2)"),
        ("x // tail \\\nf\nf", "x // tail \\\nf\nf_new"),
    ],
)
def test_a_namespace_member_is_renamed_where_it_is_meant(before: str, after: str) -> None:
    assert rename(before, [F]) == after


def test_a_global_function_is_renamed_behind_the_global_qualifier_only() -> None:
    at_top = Renamed("f", "f_new", ())
    assert rename("f() + ::f() + ns::f()", [at_top]) == "f_new() + ::f_new() + ns::f()"


def test_the_anonymous_namespace_does_not_count_as_a_qualifier() -> None:
    assert rename("ns::f() + f()", [Renamed("f", "g", ("ns", ""))]) == "ns::g() + g()"


def test_a_macro_has_no_namespace() -> None:
    assert rename("F(1); ns::F(2); a.F(3)", [MACRO]) == "F_new(1); ns::F(2); a.F(3)"


def test_two_declarations_of_one_name_go_to_their_own_new_names() -> None:
    both = [Renamed("f", "f_a", ("a",)), Renamed("f", "f_b", ("b",))]
    assert rename("a::f() + b::f()", both) == "a::f_a() + b::f_b()"


def test_bytes_that_are_no_utf8_stay() -> None:
    text = b'// caf\xe9\nf("\xff")'.decode("utf-8", "surrogateescape")
    assert rename(text, [F]) == text.replace("\nf(", "\nf_new(")


def test_tokens_are_the_whole_text() -> None:
    text = "a<b<c>>> x; /* open\n 'c' \"s\" 0x1p-3 $ \\\n @"
    assert "".join(token.text for token in tokens(text)) == text


def test_mentions_looks_at_code_only() -> None:
    assert mentions("x = f;", "f")
    assert not mentions('"f" // f\n/* f */ ff', "f")
