# ruff: noqa: E501  (kernels and op data as text)
from __future__ import annotations

import numpy as np
import pytest

from astra_integrate.errors import BadInput, NotMeasured
from astra_integrate.measure import gate, jobs
from astra_integrate.measure.workloads import ops_with_workloads, workloads_for
from astra_integrate.records import TensorArgument

DATA = """
[shared]
rows = [{ t = 2, d = 8 }]
[op.own]
args = { out = "out [t, d]", input = "in [t, 2*d] uniform(0,1)", slots = "in:int64 [t] index(4)", eps = 0.5, none = "none" }
dtypes = ["bfloat16", "float32"]
rows = "rows"
dims = [{ t = 3, d = 5, role = "edge", dtype = "float32", offset = { input = 1 }, strides = { out = "2*d, 1" }, values = { input = "special" }, eps = 0.25, note = "odd" }]
oracle = "out = input"
source = "a test"
"""


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "own_ops.toml"
    path.write_text(DATA, encoding="utf-8")
    return path


def test_workloads_from_data(data):
    first, second, edge = workloads_for("own", "own", data=data)
    assert [w.id for w in (first, second, edge)] == ["t2_d8-bfloat16", "t2_d8-float32", "t3_d5_eps0.25-float32-odd"]
    out, given, slots, eps, none = first.arguments
    assert (out.shape, given.shape, given.dtype, given.values) == ((2, 8), (2, 16), "bfloat16", "uniform(0,1)")
    assert (slots.dtype, slots.shape, eps.value, none.value) == ("int64", (2,), 0.5, None)
    assert edge.role == "edge" and edge.arguments[0].strides == (10, 1)
    assert edge.arguments[1].offset == 1 and edge.arguments[1].values == "special" and edge.arguments[3].value == 0.25
    assert len({w.seed for w in (first, second, edge)}) == 3


def test_full_size_has_more_rows(data):
    assert workloads_for("own", "own", size="full", data=data)[0].arguments[0].shape == (32, 8)


@pytest.mark.parametrize(
    ("old", "new"),
    [("[t, d]", "[t, q]"), ("[t, 2*d]", "[t, __import__('os')]"), (":int64", ":int65"), ("dims = [{", "dims = [{ = ")],
)
def test_wrong_data_are_bad_input(tmp_path, old, new):
    path = tmp_path / "own_ops.toml"
    path.write_text(DATA.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput):
        workloads_for("own", "own", data=path)


def test_unknown_op_says_where_to_describe_it():
    with pytest.raises(NotMeasured, match=r"vllm_ops\.toml"):
        workloads_for("vllm", "no_such_op")


ALL = [(framework, op) for framework in ("vllm", "sglang") for op in ops_with_workloads(framework)]


@pytest.mark.parametrize(("framework", "op"), ALL)
def test_every_described_op_has_both_roles_and_an_oracle_of_the_right_shape(framework, op):
    works = workloads_for(framework, op)
    assert {w.role for w in works} == {"representative", "edge"}
    assert len({w.id for w in works}) == len(works)
    assert all(w.source for w in works)
    for work in works:
        if work.tail_rows:
            continue
        reference = gate.references(work, 0)
        for argument in jobs.outputs(work):
            assert np.shape(reference[argument.name]) == argument.shape, (work.id, argument.name)


def test_there_are_enough_ops():
    assert len(ops_with_workloads("vllm")) >= 17


def test_emulated_sizes_stay_small():
    for framework, op in ALL:
        for work in workloads_for(framework, op):
            tensors = [a for a in work.arguments if isinstance(a, TensorArgument)]
            assert work.tail_rows or sum(int(np.prod(a.shape)) for a in tensors) < 1_500_000, work.id
