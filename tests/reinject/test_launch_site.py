"""Launches taken apart."""

from __future__ import annotations

import pytest

from astra_integrate.errors import BadInput
from astra_integrate.reinject.launch_site import sites


def _texts(pieces: tuple) -> list[str]:  # type: ignore[type-arg]
    return [piece.text for piece in pieces]


def test_a_launch_inside_a_macro_and_a_lambda() -> None:
    text = (
        "#define L(K, F) \\\n"
        '  DISPATCH(t, "k<<<", [&] { \\\n'
        "    ns::k<scalar_t, K<scalar_t, 2>, F> \\\n"
        "        <<<grid, dim3(std::min(d, 1024), (a > b)), 0, \\\n"
        "           stream>>>(out.data_ptr<scalar_t>(), /* in */ in, d + 1); \\\n"
        "  });"
    )
    (site,) = sites(text)
    assert site.name.text == "k"
    assert text[site.start : site.end].startswith("ns::k<scalar_t") and text[site.start : site.end].endswith("d + 1)")
    assert _texts(site.template_arguments) == ["scalar_t", "K<scalar_t, 2>", "F"]
    assert _texts(site.configuration) == ["grid", "dim3(std::min(d, 1024), (a > b))", "0", "stream"]
    assert _texts(site.arguments) == ["out.data_ptr<scalar_t>()", "in", "d + 1"]
    assert site.semicolon and text[site.statement_end - 1] == ";"
    assert text[site.chevrons : site.chevrons + 3] == "<<<"


def test_template_brackets_that_close_together() -> None:
    (site,) = sites("k<A<B<int>>><<<1, 2>>>(x)")
    assert (site.start, site.name.text, _texts(site.template_arguments)) == (0, "k", ["A<B<int>>"])
    assert not site.semicolon


def test_template_brackets_inside_the_configuration() -> None:
    (site,) = sites("k<<<f<g<h<int>>>(x), b<T>>>>(p, q)")
    assert (_texts(site.configuration), _texts(site.arguments)) == (["f<g<h<int>>>(x)", "b<T>"], ["p", "q"])


def test_a_launch_through_a_variable_and_without_arguments() -> None:
    (site,) = sites("auto kernel = &k<T>; kernel<<<g, b, 0, s>>>();")
    assert (site.name.text, site.template_arguments, site.arguments) == ("kernel", (), ())


def test_several_launches_in_order_and_none_in_comments() -> None:
    assert [s.name.text for s in sites("if (x) { a<<<1, 2>>>(p); } else b<T><<<1, 2>>>(q); // c<<<1, 2>>>(r)")] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("text", ["k<<<1, 2>>> x", "<<<1, 2>>>(x)", "(k)<<<1, 2>>>(x)", "k<<<1>>>(x)", "k<<<1, 2"])
def test_what_cant_be_taken_apart_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        sites(text)
