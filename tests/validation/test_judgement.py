"""Which schemas are refused, because checking a small value may never end."""

import time

import pytest

from tests.validation.recursive import AGAIN, REFUSED, USUAL, chained, of
from toolagent.contracts.contract import JsonSchema
from toolagent.validation.judgement import judged
from toolagent.validation.schemas import schema_faults

MANY: JsonSchema = {f"p{number}": {"type": "string"} for number in range(40)}


@pytest.mark.parametrize("name", USUAL)
def test_schemas_that_refer_to_themselves_as_people_write_them_are_taken(name: str) -> None:
    assert schema_faults(USUAL[name]) == ()


@pytest.mark.parametrize("name", REFUSED)
def test_branches_of_one_value_that_recurse_more_than_once_are_refused_with_the_place(name: str) -> None:
    schema, place = REFUSED[name]
    assert [(fault.path, fault.keyword) for fault in schema_faults(schema)] == [(place, "$ref")]


@pytest.mark.parametrize(
    "schema",
    [
        of(
            {
                "patternProperties": {f"^{number}": AGAIN for number in range(200)},
                "properties": {f"p{number}": AGAIN for number in range(2000)},
            }
        ),
        of({"anyOf": [{"properties": {f"p{number}": AGAIN}} for number in range(1500)]}),
        of({"anyOf": [{"$dynamicRef": "#n"} for _ in range(3000)]}, n={"$dynamicAnchor": "n"}),
        chained(2000),
        of({"oneOf": [{"properties": {"in": AGAIN, "kind": {"enum": [0, kind]}, **MANY}} for kind in range(20)]}),
    ],
    ids=["patterns", "branches", "anchors", "a long chain", "branches of many properties"],
)
def test_judging_a_schema_takes_no_long_time_itself(schema: JsonSchema) -> None:
    begun = time.process_time()
    judged(schema)
    assert time.process_time() - begun < 1
