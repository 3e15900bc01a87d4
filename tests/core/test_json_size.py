"""Counts the values of a JSON text without reading it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from toolagent.core.calls.json_size import Excess, excess_of, values_in

SCALARS = st.none() | st.booleans() | st.integers() | st.text('ab"\\,[]{}: é', max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('k",[\\', max_size=4), inner, max_size=4)
)


def counted(value: JsonValue) -> int:
    names = len(value) if isinstance(value, dict) else 0
    inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + names + sum(map(counted, inner))


def levels(value: JsonValue) -> int:
    inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(levels, inner), default=0)


@given(VALUES, st.sampled_from([None, 1]))
def test_the_number_of_values_and_levels_is_exact(value: JsonValue, indent: int | None) -> None:
    text, values, deep = json.dumps(value, indent=indent).encode(), counted(value), levels(value)
    assert values_in(text) == values
    assert excess_of(text, values, deep) is None
    if values > 1:
        found = excess_of(text, values - 1)
        assert found is not None
        assert found.number == values or (found.at_least and found.number <= values)
    if deep:
        assert excess_of(text, values, deep - 1) == Excess("levels", deep, deep - 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"[" + b"[]," * 330_000 + b"1]", "holds 330002 values"),
        (b"[" + b'"",' * 600_000 + b"1]", "holds at least 600000 values"),
        (b"[" * 250 + b"]" * 250, "is 250 levels of lists and objects deep; at most 190 are taken"),
    ],
)
def test_what_is_too_much_is_told_with_number_and_limit(text: bytes, told: str) -> None:
    assert str(excess_of(text, 110_000)).startswith(told)
