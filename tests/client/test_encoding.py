"""The payloads of Temporal."""

import pytest
from pydantic import JsonValue, ValidationError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DefaultPayloadConverter

from toolagent.client.converter import DATA_CONVERTER
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent_service.contracts.steps import Finished

HALF = Finished(error=ToolError(type=ErrorType.TIMEOUT, message="a\ud800", details={"\udc00": ["\ud800"]}))


async def test_no_text_can_keep_a_heartbeat_or_a_result_from_being_sent() -> None:
    payloads = await DATA_CONVERTER.encode(["half \ud800", 1, HALF])
    said, number, outcome = await DATA_CONVERTER.decode(payloads, [str, int, Finished])
    assert (said, number) == ("half \ufffd", 1)
    assert outcome.error == ToolError(type=ErrorType.TIMEOUT, message="a\ufffd", details={"\ufffd": ["\ufffd"]})


async def test_what_others_send_is_read_or_refused_but_not_because_of_half_a_character() -> None:
    (sent,) = DefaultPayloadConverter().to_payloads([{"tool_id": "echo", "params": {"\ud83d": "\ud800"}}])
    assert await DATA_CONVERTER.decode([sent], [ToolCall]) == [ToolCall(tool_id="echo", params={"\ufffd": "\ufffd"})]
    with pytest.raises(ValidationError):
        await DATA_CONVERTER.decode([sent], [ToolError])


@pytest.mark.parametrize("value", [None, b"bytes", {"a": ["😀\0", 1.5]}, Finished(output={"a": 1})])
async def test_all_else_is_sent_as_pydantic_sends_it(value: JsonValue | bytes | Finished) -> None:
    assert await DATA_CONVERTER.encode([value]) == await pydantic_data_converter.encode([value])
