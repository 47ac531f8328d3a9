"""What is reached from what, by names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_integrate.extract.closure import Piece, reach


def piece(name: str, text: str, **more: object) -> Piece:
    return Piece(key=name, names=(name,), text=text, **more)  # type: ignore[arg-type]


PIECES = [
    piece("LANES", "#define LANES 32"),
    piece("WIDE", "#define WIDE(x) half_of(x, LANES)"),
    piece("half_of", "int half_of(int x, int n) { return x / n; }"),
    piece("unused", "int unused() { return LANES; }"),
    piece("kernel", '__global__ void kernel(int* p) { *p = WIDE(*p); /* unused */ puts("unused"); }'),
]


def test_macros_are_followed_into_their_bodies() -> None:
    assert reach(PIECES, ["kernel"]) == {"kernel", "WIDE", "LANES", "half_of"}


def test_comments_and_strings_reach_nothing() -> None:
    assert "unused" not in reach(PIECES, ["kernel"])


def test_further_names_are_roots_too() -> None:
    assert "unused" in reach(PIECES, ["kernel"], names=["unused", "nobody"])


def test_overloads_and_specialisations_come_along() -> None:
    pieces = [
        Piece("general", ("Box",), "template <class T> struct Box;", "CLASS_TEMPLATE"),
        Piece("special", ("Box",), "template <> struct Box<float> { Inner x; };", "STRUCT_DECL"),
        piece("Inner", "struct Inner {};"),
        piece("user", "Box<float> b;"),
    ]
    assert reach(pieces, ["user"]) == {"general", "special", "Inner", "user"}


def test_a_barred_piece_is_never_reached_but_may_be_a_root() -> None:
    pieces = [piece("host", "void host() {}", barred=True), piece("user", "int user() { return host(); }")]
    assert reach(pieces, ["user"]) == {"user"}
    assert reach(pieces, ["host"]) == {"host"}
    assert reach(pieces, ["user"], names=["host"]) == {"user"}


def test_a_free_operator_comes_with_the_types_of_its_parameters() -> None:
    pieces = [
        piece("Vec", "struct Vec { float x; };", kind="STRUCT_DECL"),
        piece("Other", "struct Other {};", kind="STRUCT_DECL"),
        Piece("plus", ("operator+",), "Vec operator+(const Vec& a, const Vec& b) { return join(a, b); }"),
        Piece("mixed", ("operator-",), "Vec operator-(const Vec& a, const Other& b) { return a; }"),
        piece("join", "Vec join(Vec a, Vec b);"),
        piece("user", "Vec user(Vec a) { return a + a; }"),
    ]
    assert reach(pieces, ["user"]) == {"Vec", "plus", "join", "user"}


def test_using_namespace_comes_with_its_namespace() -> None:
    def using(name: str) -> Piece:
        return Piece(name, (), f"using namespace {name};", "USING_DIRECTIVE")

    pieces = [
        using("mine"),
        using("foreign"),
        using("cub"),
        piece("helper", "int helper();", namespaces=("mine",)),
        piece("user", "int user() { return helper(); }"),
    ]
    assert reach(pieces, ["user"], (), {"cub"}) == {"user", "helper", "mine", "cub"}


@st.composite
def graphs(draw: st.DrawFn) -> list[Piece]:
    count = draw(st.integers(1, 12))
    edges = [draw(st.sets(st.integers(0, count - 1), max_size=4)) for _ in range(count)]
    return [
        piece(f"f{i}", f"int f{i}() {{ return {' + '.join(f'f{j}()' for j in sorted(e)) or '0'}; }}")
        for i, e in enumerate(edges)
    ]


@given(graphs())
def test_the_closure_is_closed_and_nothing_else_is_in_it(pieces: list[Piece]) -> None:
    root = pieces[0].key
    reached = reach(pieces, [root])
    by_key = {p.key: p for p in pieces}

    def mentioned(key: str) -> set[str]:
        words = by_key[key].text.replace("(", " ").replace(")", " ").split("{")[1].split()
        return {word for word in words if word in by_key}

    for key in reached:
        assert mentioned(key) <= reached
    grown = {root}
    while True:
        more = {m for key in grown for m in mentioned(key)} - grown
        if not more:
            break
        grown |= more
    assert reached == grown


def test_an_unknown_root_is_an_error() -> None:
    with pytest.raises(KeyError):
        reach(PIECES, ["nothing"])
