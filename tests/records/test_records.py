"""Every record survives JSON, takes no unknown field, and can't be changed."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from astra_integrate import records
from astra_integrate.records import Edit, Extent, OutputError, Record, ScalarArgument, digest_of

RECORDS = [
    found
    for name in records.__all__
    if isinstance(found := getattr(records, name), type) and issubclass(found, Record) and found is not Record
]

# Few elements each: what differs between records is their shape.
_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12),
    int: st.integers(min_value=0),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
}


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type, found from the type alone."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, type) and issubclass(kind, Record):
        return record(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of([strategy(argument) for argument in arguments])
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return st.lists(strategy(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(strategy, arguments))
    raise TypeError(f"{kind} is no type for a record: it would not come back from JSON as it was")


@cache
def record(kind: type[Record]) -> st.SearchStrategy[Record]:
    fields = {name: strategy(field.annotation) for name, field in kind.model_fields.items()}
    return st.builds(kind, **fields)


def for_every_record(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)(test)


def test_every_record_class_is_public() -> None:
    def below(kind: type) -> set[type]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    defined = {kind for kind in below(Record) if kind.__module__.startswith("astra_integrate.records")}
    assert defined - {Record} == set(RECORDS)


@for_every_record
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_json_round_trip(kind: type[Record], data: st.DataObject) -> None:
    made = data.draw(record(kind))
    text = made.to_json()
    again = kind.from_json(text)
    assert again == made and again.to_json() == text and "\n" not in text
    assert kind.from_json(text.encode()) == made
    assert again.digest == made.digest == digest_of(text)
    # Types too: True and 1 and 1.0 are equal and yet not the same answer.
    assert repr(again) == repr(made)


@for_every_record
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_unknown_fields_are_refused(kind: type[Record], data: st.DataObject) -> None:
    document = json.loads(data.draw(record(kind)).to_json())
    with pytest.raises(ValidationError, match="extra"):
        kind.from_json(json.dumps({**document, "field_of_the_future": 1}))
    with pytest.raises(ValidationError):
        kind(**document, field_of_the_future=1)


@for_every_record
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_records_are_frozen(kind: type[Record], data: st.DataObject) -> None:
    made = data.draw(record(kind))
    for name in kind.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(made, name, getattr(made, name))
    assert isinstance(hash(made), int)


@for_every_record
def test_anything_else_is_refused(kind: type[Record]) -> None:
    for text in ("", "[]", "null", '{"', "7"):
        with pytest.raises(ValidationError):
            kind.from_json(text)


@settings(max_examples=50, deadline=None)
@given(one=record(Extent), two=record(Extent))
def test_equal_records_have_equal_digests_and_others_other_ones(one: Extent, two: Extent) -> None:
    assert (one == two) == (one.digest == two.digest)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_figures_that_are_no_numbers_come_back(value: float) -> None:
    """The error of a candidate that writes NaN, and an argument that is infinite."""
    error = OutputError(output="o", candidate=value, baseline=0.0, limit=1.0)
    assert repr(OutputError.from_json(error.to_json())) == repr(error)
    argument = ScalarArgument(name="x", value=value)
    assert repr(ScalarArgument.from_json(argument.to_json())) == repr(argument)


def test_bytes_of_a_source_that_are_no_utf_8_come_back() -> None:
    """Source text is decoded with surrogateescape, so that an edit is an edit of bytes."""
    extent = Extent(file="f", start=0, end=1, bytes_digest="")
    edit = Edit(extent=extent, text=b"// caf\xe9".decode("utf-8", "surrogateescape"))
    assert Edit.from_json(edit.to_json()) == edit
    assert digest_of(edit.text) == digest_of(b"// caf\xe9")
