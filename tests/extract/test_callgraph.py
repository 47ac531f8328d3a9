"""From a host function to kernels over units joined by name."""

from __future__ import annotations

from astra_integrate.extract.callgraph import CallGraph
from astra_integrate.extract.worker import Mentions, UnitResult


def unit(name, **mentions):
    listed = [Mentions(name=key.replace("__", "::"), file=name, names=tuple(names)) for key, names in mentions.items()]
    return UnitResult(unit=name, mentions=tuple(listed))


def test_a_function_of_another_unit_is_followed():
    graph = CallGraph([unit("a.cu", host=["declared"]), unit("b.cu", declared=["ns::kernel"])], {"ns::kernel"})
    assert graph.kernels("host", "a.cu") == (("ns::kernel",), True)


def test_kernels_end_the_way():
    graph = CallGraph([unit("a.cu", host=["one"], one=["two"])], {"one", "two"})
    assert graph.kernels("host", None) == (("one",), True)


def test_cycles_end():
    assert CallGraph([unit("a.cu", a=["b"], b=["a", "k"])], {"k"}).kernels("a", None) == (("k",), True)


def test_the_named_file_decides_between_equal_names_else_it_is_ambiguous():
    units = [unit("a.cu", x__run=["one"]), unit("b.cu", y__run=["two"])]
    graph = CallGraph(units, {"one", "two"})
    assert graph.kernels("run", "b.cu") == (("two",), True)
    assert graph.kernels("run", None) == (("one", "two"), False)
    assert graph.kernels("x::run", None) == (("one",), True)


def test_a_method_through_an_alias_of_two_classes():
    graph = CallGraph(
        [unit("a.cuh", n__Both=["n::Wide", "n::Small"], n__Wide__run=["wide"], n__Small__run=["small"])],
        {"wide", "small"},
    )
    assert graph.kernels("Both::run", "a.cuh")[0] == ("small", "wide")


def test_what_is_not_there_reaches_nothing():
    assert CallGraph([], set()).kernels("gone", None) == ((), True)
