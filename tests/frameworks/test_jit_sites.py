"""Python that loads CUDA sources at run time: sources, exports, flags, and who calls them."""

from __future__ import annotations

import pytest

from astra_integrate.frameworks.jit_sites import Export, scan

MODULE = """
from pkg.jit import load_jit

def fast_flags():
    if AMD:
        return []
    return ["--use_fast_math"]

def fold_module(dtype):
    flags = fast_flags()
    args = make(dtype)
    return load_jit(
        "fold", *args,
        cuda_files=["rows/fold.cuh"],
        cuda_wrappers=[("fold", f"FoldKernel<{args}>::run"), ("unfold", f"unfold<{args}, 2>")],
        extra_cuda_cflags=flags if dtype else [],
    )

def plain_module():
    return load_jit("plain", cuda_files=[path("rows/plain.cuh")], cuda_wrappers=[(name, "x") for name in NAMES])

def fold_rows(x):
    fold_module(x.dtype).fold(x)
"""


@pytest.fixture
def sites(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "fold.py").write_text(MODULE)
    return scan(tmp_path, tmp_path / "pkg")


def test_literal_and_computed_sites(sites):
    fold, plain = sites.sites
    assert (fold.function, fold.cuda_files, fold.literal) == ("fold_module", ("rows/fold.cuh",), True)
    assert [(e.name, e.function) for e in fold.exports] == [("fold", "FoldKernel::run"), ("unfold", "unfold")]
    assert (plain.cuda_files, plain.exports, plain.literal) == (("rows/plain.cuh",), (), False)


def test_flags_behind_names_and_functions_are_found_and_marked_as_computed(sites):
    assert sites.sites[0].cuda_flags == ("--use_fast_math",)
    assert not sites.sites[0].flags_literal
    assert sites.sites[1].flags_literal


def test_who_calls_an_export(sites):
    assert [(c.file, c.function) for c in sites.calls["fold"]] == [("pkg/fold.py", "fold_rows")]
    assert "unfold" not in sites.calls


def test_the_function_of_an_expression():
    assert Export("a", "ns::K<{x}, other<int>>::run<1>").function == "ns::K::run"
    assert Export("a", "&f").function == "f"
