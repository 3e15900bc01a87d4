"""Which schemas no tool may have, because checking a small value against them may take for ever."""

import pytest

from tests.validation.recursive import REFUSED, USUAL
from toolagent.validation.schemas import schema_faults


@pytest.mark.parametrize("name", USUAL)
def test_schemas_that_refer_to_themselves_as_people_write_them_are_taken(name: str) -> None:
    assert schema_faults(USUAL[name]) == ()


@pytest.mark.parametrize("name", REFUSED)
def test_branches_of_one_value_that_recurse_more_than_once_are_refused_with_the_place(name: str) -> None:
    schema, place = REFUSED[name]
    assert [(fault.path, fault.keyword) for fault in schema_faults(schema)] == [(place, "$ref")]
