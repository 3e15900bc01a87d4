"""The pure rules of the `<ACTION>` protocol."""

import pytest
from pydantic import JsonValue

from toolagent.contracts.calls import ToolResult
from toolagent.core.calls.action import Block, block_of, observation_of


@pytest.mark.timeout(20)
def test_a_text_that_only_begins_like_xml_is_read_in_no_time() -> None:
    assert block_of("<?xml" + " " * 2_000_000) == Block("", "<?xml")


def test_a_declaration_before_the_block_is_no_response_text() -> None:
    assert block_of(' <?xml version="1.0"?> So: <ACTION/> Done.').around == "So:\n\nDone."


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"success": True, "outputData": {"processed_items": 10}, "logs": ["done"]}, '{"processed_items": 10}'),
        ({"success": True, "outputData": {"a": 1}, "more": 2}, '{"success": true, "outputData": {"a": 1}, "more": 2}'),
        ({"success": True}, '{"success": true}'),
        ([1], "[1]"),
    ],
)
def test_of_a_script_that_was_executed_the_agent_is_told_its_output(output: JsonValue, said: str) -> None:
    observation = observation_of(ToolResult(tool_id="t", status="success", result=output))
    assert observation.content == f"Tool t executed successfully. Output: {said}"
