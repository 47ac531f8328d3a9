"""Plan expressions → C++."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_integrate.errors import BadInput
from astra_integrate.reinject.expressions import Scope, repeated, to_cpp

SCOPE = Scope(
    {"d": "d", "n": "rows + 1", "out": "out.data_ptr<T>()", "grid_x": "grid.x", "block_x": "dim3(rows).x"},
    {"T": "scalar_t"},
)


@pytest.mark.parametrize(
    ("plan", "cpp"),
    [
        ("ceil_div(d, 8)", "(d + 7) / 8"),
        ("min(ceil_div(d, 8), 1024)", "std::min<int64_t>((d + 7) / 8, 1024)"),
        ("max(1, d, n)", "std::max<int64_t>(std::max<int64_t>(1, d), rows + 1)"),
        ("16 / sizeof(T)", "16 / sizeof(scalar_t)"),
        ("ceil_div(d, 16 / sizeof(T))", "(d + 16 / sizeof(scalar_t) - 1) / (16 / sizeof(scalar_t))"),
        ("(d - 1) / sizeof(T)", "(static_cast<int64_t>(d) - 1) / static_cast<int64_t>(sizeof(scalar_t))"),
        ("grid_x * d", "static_cast<int64_t>(grid.x) * d"),
        ("n * 2", "(rows + 1) * 2"),
        ("n + 2", "(rows + 1) + 2"),
        ("d - (n - 1)", "static_cast<int64_t>(d) - (static_cast<int64_t>(rows + 1) - 1)"),
        ("d / (n % 4)", "d / ((rows + 1) % 4)"),
        ("d % 8 == 0 && aligned(out, 16)", "d % 8 == 0 && reinterpret_cast<uintptr_t>(out.data_ptr<T>()) % 16 == 0"),
        ("not (d < 3 or block_x >= 4)", "!(d < 3 || dim3(rows).x >= 4)"),
        ("d > 3 and (d < 9 || n != 1)", "d > 3 && (d < 9 || (rows + 1) != 1)"),
        ("!(d == 2)", "!(d == 2)"),
        ("-d", "-d"),
    ],
)
def test_it_reads_as_one_would_write_it(plan: str, cpp: str) -> None:
    assert to_cpp(plan, SCOPE) == cpp


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        ("foo(3)", "foo(3)"),
        ("q + 1", "'q'"),
        ("d +", "invalid syntax"),
        ("sizeof(U)", "sizeof(U)"),
        ("d if n else 3", "d if n else 3"),
        ("1.5 * d", "1.5"),
        ("d.x", "d.x"),
        ("1 < d < 3", "1 < d < 3"),
        ("__import__('os')", "__import__"),
        ("[d for d in n]", "for d in n"),
        ("min(d)", "min(d)"),
    ],
)
def test_what_is_not_in_the_language_is_named(plan: str, named: str) -> None:
    with pytest.raises(BadInput) as caught:
        to_cpp(plan, SCOPE)
    assert named in str(caught.value)


def test_repeated_constants_are_found_and_written_by_name() -> None:
    plan = "ceil_div(d, 16 / sizeof(T)) + d % (16 / sizeof(T))"
    assert repeated(plan) == ("16 / sizeof(T)",)
    assert to_cpp(plan, SCOPE, {"16 / sizeof(T)": "pack"}) == "(d + pack - 1) / pack + d % pack"
    assert repeated("d / 4 + d / 4") == ()


_LEAVES = st.sampled_from(["a", "b", "1", "3", "32", "sizeof(T)"])
_PLANS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["ceil_div", "min", "max"]), inner).map(lambda t: f"{t[1]}({t[0]}, {t[2]})"),
        st.tuples(inner, st.sampled_from("/%"), st.sampled_from(["3", "32", "b", "sizeof(T)"])).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=8, deadline=None)
@given(st.lists(_PLANS, min_size=20, max_size=20), st.integers(0, 70000), st.integers(1, 70000))
def test_cpp_computes_what_python_computes(plans: list[str], a: int, b: int) -> None:
    """The same number in both languages, as long as C++'s 64 bits hold it."""
    python = {
        "a": a,
        "b": b,
        "sizeof": lambda kind: kind,
        "T": 2,
        "ceil_div": lambda total, part: -(-total // part),
        "min": min,
        "max": max,
    }
    # A division by ceil_div's second argument may be by zero: those plans say nothing.
    usable: list[tuple[str, int]] = []
    for plan in plans:
        try:
            value = eval(plan.replace("/", "//"), {"__builtins__": {}}, python)  # our own strings
        except ZeroDivisionError:
            continue
        if abs(value) < 1 << 31:
            usable.append((plan, value))
    scope = Scope({"a": "a", "b": "b"}, {"T": "short"})
    lines = "\n".join(f'  std::printf("%lld\\n", (long long)({to_cpp(plan, scope)}));' for plan, _ in usable)
    program = f"#include <algorithm>\n#include <cstdint>\n#include <cstdio>\nint main() {{ int a = {a}, b = {b};\n"
    assert _run(program + lines + "\n(void)a; (void)b; }") == [value for _, value in usable]


def _run(program: str) -> list[int]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "p.cpp"
        source.write_text(program)
        subprocess.run(["g++", "-std=c++17", "-w", "-o", f"{folder}/p", source], check=True)
        return [int(line) for line in subprocess.run([f"{folder}/p"], capture_output=True, text=True).stdout.split()]
