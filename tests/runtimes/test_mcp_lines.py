"""A server's output, as lines and as messages; and the meaning of its answers."""

import json
import os

import anyio
import pytest
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse
from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.mcp.answers import answer_of, failure_of
from engine.runtimes.mcp.codes import BROKEN, FORGOTTEN, LOGIN, NOT_SENT, REFUSED, TOO_LARGE
from engine.runtimes.mcp.lines import Line, Lines, message_of
from engine.runtimes.mcp.pipes import Pipes, over_pipes
from toolagent.contracts.calls import ErrorType

ANSWER: dict[str, JsonValue] = {"jsonrpc": "2.0", "id": 7, "result": {"text": "x" * 5000}}


def read(*chunks: bytes, most: int = 1024) -> list[JSONRPCMessage | None]:
    lines = Lines(most)
    return [message_of(line, 1000) for chunk in chunks for line in lines.feed(chunk)]


def test_lines_are_put_together_of_what_comes_and_empty_ones_left_out() -> None:
    lines = Lines(100)
    assert [*lines.feed(b"one\ntw"), *lines.feed(b"o\n\n \nth"), *lines.feed(b"ree\n")] == [
        Line(b"one", 3),
        Line(b"two", 3),
        Line(b"three", 5),
    ]


@pytest.mark.parametrize("size", [1024, 1025, 1500, 1536, 1537, 100_000])
@pytest.mark.parametrize("piece", [1, 7, 511, 512, 513, 100_000])
def test_of_a_line_that_is_too_long_its_ends_are_kept(size: int, piece: int) -> None:
    text = bytes(97 + number % 26 for number in range(size))
    lines = Lines(1024)
    (line,) = [line for at in range(0, size + 1, piece) for line in lines.feed((text + b"\n")[at : at + piece])]
    assert line.size == size
    assert line.text == (text if size <= 1024 else text[:512] + text[-512:])


FIELDS = ("jsonrpc", "id", "result")


@pytest.mark.parametrize("order", [FIELDS, ("id", "result", "jsonrpc"), ("result", "jsonrpc", "id"), ("jsonrpc", "result", "id")])
def test_an_answer_that_is_too_large_becomes_the_error_of_its_call(order: tuple[str, ...]) -> None:
    text = json.dumps({name: ANSWER[name] for name in order}).encode()
    (message,) = read(text + b"\n")
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.code) == (7, TOO_LARGE)


def test_an_id_inside_of_an_answer_is_not_taken_for_its_own() -> None:
    inner = json.dumps({"jsonrpc": "2.0", "result": {"text": "x" * 5000, "id": 9}}).encode()
    assert read(inner + b"\n") == [None]


@pytest.mark.parametrize("text", [b"hello", b"{}", b"[]", b"5", b'{"jsonrpc": "1.0", "id": 1}', b"\xff\xfe", b"{" * 100_000])
def test_what_is_no_message_is_none(text: bytes) -> None:
    assert read(text + b"\n", most=1_000_000) == [None]


def test_a_message_is_read() -> None:
    assert read(b'{"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}\n') == [JSONRPCResponse(jsonrpc="2.0", id=1, result={"a": 1})]


async def test_a_request_of_which_nothing_was_written_is_said_to_be_not_sent() -> None:
    pipes = Pipes.make()
    stdin, stdout = pipes.given
    os.close(stdin)
    async with over_pipes(pipes, 1024, 100, lambda _: None) as (received, sent):
        for number in range(2):
            await sent.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call")))
            answer = await received.receive()
            assert isinstance(answer, SessionMessage)
            assert isinstance(answer.message, JSONRPCError)
            assert (answer.message.id, answer.message.error.code) == (number, NOT_SENT)
        # Then the connection ends.
        with pytest.raises(anyio.EndOfStream):
            await received.receive()
    os.close(stdout)


def result(**fields: JsonValue) -> CallToolResult:
    return CallToolResult.model_validate({"content": [], **fields})


def test_what_is_structured_is_the_output_whatever_stands_beside_it() -> None:
    assert answer_of(result(content=[{"type": "text", "text": "{}"}], structuredContent={"a": 1}), 100).output == {"a": 1}


def test_no_content_is_an_empty_text() -> None:
    assert answer_of(result(), 100).output == {"text": ""}


def test_halves_of_characters_are_mended() -> None:
    assert answer_of(result(content=[{"type": "text", "text": "\ud800"}]), 100).output == {"text": "\ufffd"}


def test_secrets_are_masked_wherever_they_come_back() -> None:
    said = result(structuredContent={"a": ["my s3cret-value"], "s3cret-value": 1})
    assert answer_of(said, 100, ["s3cret-value"]).output == {"a": ["my ***"], "***": 1}
    with pytest.raises(CallFailed) as caught:
        answer_of(result(content=[{"type": "text", "text": "no s3cret-value"}], isError=True), 100, ["s3cret-value"])
    assert caught.value.message == "no ***"


@pytest.mark.parametrize(
    ("code", "kind", "error_type", "outcome"),
    [
        (NOT_SENT, NotSent, ErrorType.UNAVAILABLE, ""),
        (FORGOTTEN, NotSent, ErrorType.UNAVAILABLE, ""),
        (REFUSED, NotSent, ErrorType.SECURITY_ERROR, ""),
        (BROKEN, CallFailed, ErrorType.EXECUTION_ERROR, "unknown"),
        (-32000, CallFailed, ErrorType.EXECUTION_ERROR, "unknown"),
        (TOO_LARGE, CallFailed, ErrorType.OUTPUT_VALIDATION_ERROR, "failed"),
        (-32700, CallFailed, ErrorType.OUTPUT_VALIDATION_ERROR, "failed"),
        (-32602, CallFailed, ErrorType.VALIDATION_ERROR, "failed"),
        (-32603, CallFailed, ErrorType.EXECUTION_ERROR, "failed"),
        (12345, CallFailed, ErrorType.EXECUTION_ERROR, "failed"),
    ],
)
def test_an_error_says_what_became_of_the_call(code: int, kind: type, error_type: ErrorType, outcome: str) -> None:
    failure = failure_of(MCPError(code=code, message="So it was."))
    assert (type(failure), failure.error_type, getattr(failure, "outcome", "")) == (kind, error_type, outcome)


@pytest.mark.parametrize("data", ["a text", ["a", "list"], 5, None])
def test_a_code_of_ours_that_a_server_sends_with_anything_is_a_failure_too(data: JsonValue) -> None:
    failure = failure_of(MCPError(code=LOGIN, message="So it was.", data=data))
    assert (failure.error_type, failure.details) == (ErrorType.DEPENDENCY_ERROR, {})
