"""How the real client reads an answer, complete and streamed."""

import time
from collections.abc import Awaitable, Callable
from itertools import groupby

import httpx2
import pytest
from anthropic import Anthropic, APIConnectionError, AuthenticationError, BadRequestError, NotFoundError
from anthropic.types import Message, MessageParam

from tests.testing_servers.conversations import MODEL, TOOL, ask, ask_streamed, client_of, said, scenario, user, uses
from toolagent.testing.servers.model_server import ModelServer

Ask = Callable[..., Awaitable[Message]]
TEXT = "I look first — 先看一看. " * 20
BOTH = pytest.mark.parametrize("asked", [ask, ask_streamed])


@BOTH
async def test_text_and_several_tool_uses_come_in_order(asked: Ask) -> None:
    script = scenario(f"""
    turns:
      - text: "{TEXT}"
        tool_use:
          - {{name: look, input: {{at: "über \\"all\\"", deep: [1, 2.5, null, {{all: true}}]}}}}
          - {{name: look}}
    """)
    async with ModelServer(script) as server:
        message = await asked(server, user("hi"))
    first, second = uses(message.content)
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert message.content[0].type == "text"
    assert message.content[0].text == TEXT
    assert (first.name, first.input) == ("look", {"at": 'über "all"', "deep": [1, 2.5, None, {"all": True}]})
    assert (second.name, second.input) == ("look", {})
    assert first.id != second.id
    assert (message.stop_reason, message.model, message.role) == ("tool_use", MODEL, "assistant")


@BOTH
async def test_blocks_may_come_in_any_order(asked: Ask) -> None:
    script = scenario("""
    turns:
      - content:
          - {type: thinking, thinking: "First I think about it.", signature: c2lnbmVk}
          - {type: tool_use, name: look, input: {at: sky}}
          - {type: text, text: after}
    """)
    async with ModelServer(script) as server:
        message = await asked(server, user("hi"))
    thought, use, text = message.content
    assert thought.type == "thinking"
    assert (thought.thinking, thought.signature) == ("First I think about it.", "c2lnbmVk")
    assert use.type == "tool_use"
    assert text.type == "text"


@BOTH
@pytest.mark.parametrize(
    "reason", ["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"]
)
async def test_a_turn_may_stop_for_any_reason(asked: Ask, reason: str) -> None:
    async with ModelServer(scenario(f"turns: [{{text: well, stop_reason: {reason}, stop_sequence: END}}]")) as server:
        message = await asked(server, user("hi"))
    assert (message.stop_reason, message.stop_sequence) == (reason, "END")


@BOTH
async def test_a_turn_may_say_nothing(asked: Ask) -> None:
    async with ModelServer(scenario("turns: [{stop_reason: end_turn}]")) as server:
        message = await asked(server, user("hi"))
    assert message.content == []
    assert message.stop_reason == "end_turn"


@BOTH
async def test_usage_is_what_the_turn_says(asked: Ask) -> None:
    script = scenario("""
    turns:
      - text: counted
        usage: {input_tokens: 7, output_tokens: 11, cache_creation_input_tokens: 13, cache_read_input_tokens: 17}
    """)
    async with ModelServer(script) as server:
        usage = (await asked(server, user("hi"))).usage
    assert (usage.input_tokens, usage.output_tokens) == (7, 11)
    assert (usage.cache_creation_input_tokens, usage.cache_read_input_tokens) == (13, 17)


async def test_the_events_of_a_stream_come_in_the_order_of_the_api() -> None:
    script = scenario(f"turns: [{{text: '{TEXT}', tool_use: {{name: look, input: {{at: '{TEXT}'}}}}}}]")
    async with ModelServer(script) as server, client_of(server.url) as client:
        raw = await client.messages.with_streaming_response.create(
            model=MODEL, max_tokens=500, messages=[user("hi")], stream=True
        ).__aenter__()
        lines = [line async for line in raw.iter_lines()]
        await raw.close()
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert [name for name, _ in groupby(names)] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert names.count("content_block_delta") > 10
    assert raw.headers["content-type"].startswith("text/event-stream")
    assert raw.headers["request-id"].startswith("req_")


async def test_a_turn_that_is_asked_for_again_names_its_tool_uses_alike() -> None:
    async with ModelServer(scenario("turns: [{tool_use: {name: look}}, {tool_use: {name: look}}]")) as server:
        first, again = await ask(server, user("hi")), await ask_streamed(server, user("hi"))
        (use,) = uses(first.content)
        other = await ask(server, user("hi"), said(first), _result(use.id))
    assert uses(again.content) == [use]
    assert uses(other.content)[0].id != use.id
    assert first.id != again.id


async def test_a_turn_takes_as_long_as_it_says() -> None:
    async with ModelServer(scenario("turns: [{text: slowly said in several pieces, seconds: 0.3}]")) as server:
        for asked in (ask, ask_streamed):
            clock = _Clock()
            await asked(server, user("hi"))
            assert 0.3 <= clock.seconds < 5


async def test_tokens_are_counted() -> None:
    script = scenario("turns: [{text: hi, usage: {input_tokens: 5, cache_read_input_tokens: 100}}, {text: bye}]")
    async with ModelServer(script) as server, client_of(server.url) as client:
        given = await client.messages.count_tokens(model=MODEL, messages=[user("hi")], tools=[TOOL], system="be kind")
        asked: list[MessageParam] = [user("hi"), {"role": "assistant", "content": "hi"}, user("x" * 400)]
        estimated = await client.messages.count_tokens(model=MODEL, messages=asked)
    assert given.input_tokens == 105
    assert 100 <= estimated.input_tokens < 200


async def test_models_are_listed() -> None:
    async with ModelServer(scenario("{models: [one, two], turns: [{text: hi}]}")) as server, client_of(server.url) as client:
        assert [model.id async for model in client.models.list()] == ["one", "two"]
        assert (await client.models.retrieve("two")).display_name == "two"
        with pytest.raises(NotFoundError):
            await client.models.retrieve("three")
        with pytest.raises(NotFoundError) as refused:
            await ask(server, user("hi"), model="three")
    assert refused.value.type == "not_found_error"


async def test_another_key_is_refused() -> None:
    async with ModelServer(scenario(f"{{key: {'right'}, turns: [{{text: hi}}]}}")) as server:
        assert (await ask(server, user("hi"), key="right")).stop_reason == "end_turn"
        with pytest.raises(AuthenticationError) as refused:
            await ask(server, user("hi"), key="wrong")
        async with client_of(server.url, "wrong") as client:
            with pytest.raises(AuthenticationError):
                await client.models.list()
    error = refused.value
    assert (error.status_code, error.type, error.api_message) == (401, "authentication_error", "invalid x-api-key")
    assert error.request_id is not None
    assert error.body == {
        "type": "error",
        "error": {"type": "authentication_error", "message": "invalid x-api-key"},
        "request_id": error.request_id,
    }


async def test_what_the_api_has_not_is_not_found() -> None:
    async with ModelServer(scenario("turns: [{text: hi}]")) as server, client_of(server.url) as client:
        with pytest.raises(NotFoundError) as refused:
            await client.post("/v1/complete", cast_to=object, body={})
    assert refused.value.type == "not_found_error"


async def test_a_server_answers_blocking_clients_of_its_own_thread_too() -> None:
    with ModelServer(scenario("turns: [{text: hi}]")) as server, Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
        assert client.messages.create(model=MODEL, max_tokens=5, messages=[user("hi")]).stop_reason == "end_turn"


async def test_a_server_that_was_left_is_gone() -> None:
    async with ModelServer(scenario("turns: [{text: hi}]")) as server:
        url = server.url
    async with client_of(url) as client:
        with pytest.raises(APIConnectionError):
            await client.models.list()
    with pytest.raises(RuntimeError, match="not up"):
        _ = server.url


async def test_a_server_that_is_left_cuts_off_what_is_under_way(caplog: pytest.LogCaptureFixture) -> None:
    server = ModelServer(scenario("turns: [{text: this takes very long, seconds: 60}]"))
    await server.__aenter__()
    async with client_of(server.url) as client:
        stream = await client.messages.create(model=MODEL, max_tokens=5, messages=[user("hi")], stream=True)
        clock = _Clock()
        await server.__aexit__(None, None, None)
        assert clock.seconds < 20
        with pytest.raises(httpx2.RemoteProtocolError):
            [event async for event in stream]
    assert caplog.records == []


async def test_bad_json_is_an_invalid_request() -> None:
    async with ModelServer(scenario("turns: [{text: hi}]")) as server, client_of(server.url) as client:
        with pytest.raises(BadRequestError) as refused:
            await client.post("/v1/messages", cast_to=object, content=b"{", options={"headers": {"content-type": "application/json"}})
    assert refused.value.type == "invalid_request_error"


class _Clock:
    def __init__(self) -> None:
        self._begun = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun


def _result(use_id: str) -> MessageParam:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use_id, "content": "seen"}]}
