"""Texts of others, changed so that they can be stored and sent."""

import pytest
from pydantic import JsonValue
from pydantic_core import from_json, to_json

from toolagent.core.texts import well_formed, well_formed_contract, well_formed_json, well_formed_value
from toolagent_service.contracts.model import Message, Text, ToolUse

GONE = "\N{REPLACEMENT CHARACTER}"


def test_halves_of_characters_and_nul_are_replaced_and_all_else_stays() -> None:
    assert well_formed("a\ud800b\udfff\0\n\t\x1b é 二 😀") == f"a{GONE}b{GONE}{GONE}\n\t\x1b é 二 😀"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud83d\ud83d\ude00\uDE00"', f"{GONE}😀{GONE}"),
        (rb'{"\udc00": "\u0000"}', {GONE: "\0"}),
        (rb'["\\ud800", "\\\ud800", "\n"]', ["\\ud800", f"\\{GONE}", "\n"]),
    ],
    ids=["a pair", "halves beside a pair", "a name, and NUL", "backslashes"],
)
def test_in_json_only_escapes_of_halves_are_replaced(text: bytes, value: JsonValue) -> None:
    assert from_json(well_formed_json(text)) == value


def test_a_value_with_nothing_to_mend_is_the_same_object_and_any_other_can_be_sent() -> None:
    fine: JsonValue = {"a": ["😀\0", 1.5, None]}
    assert well_formed_value(fine) is fine
    assert well_formed_value({"\ud800": [{"a": "b\udfff"}], "n": 2**70}) == {GONE: [{"a": f"b{GONE}"}], "n": 2**70}
    said = Message(role="assistant", content=(Text(text="\ud800"), ToolUse(id="\udc00", name="n", input={"\ud800": {"a": "\ud800"}})))
    mended = Message(role="assistant", content=(Text(text=GONE), ToolUse(id=GONE, name="n", input={GONE: {"a": GONE}})))
    assert well_formed_contract(said) == mended
    assert to_json(mended)
