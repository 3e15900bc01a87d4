"""Without a given usage, cached tokens follow from the marks in the request, as with the API."""

from anthropic.types import MessageParam, TextBlockParam, Usage

from tests.testing_servers.conversations import MODEL, TOOL, client_of, scenario
from toolagent.testing.servers.model_server import ModelServer

LONG = "A long description of everything. " * 40


def block(text: str, marked: bool = True) -> TextBlockParam:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}} if marked else {"type": "text", "text": text}


def spoken(place: int, turn: TextBlockParam) -> MessageParam:
    return {"role": "assistant", "content": [turn]} if place % 2 else {"role": "user", "content": [turn]}


async def usage(server: ModelServer, system: TextBlockParam, *turns: TextBlockParam) -> Usage:
    messages = [spoken(place, turn) for place, turn in enumerate(turns)]
    async with client_of(server.url) as client:
        return (await client.messages.create(model=MODEL, max_tokens=5, system=[system], messages=messages, tools=[TOOL])).usage


async def test_a_prompt_is_written_once_and_read_from_then_on() -> None:
    async with ModelServer(scenario("turns: [{text: so, repeat: forever}]")) as server:
        first = await usage(server, block(LONG), block("hi"))
        then = await usage(server, block(LONG), block("hi", False), block("so", False), block("go on"))
    assert first.cache_read_input_tokens == 0
    assert first.cache_creation_input_tokens is not None
    assert first.cache_creation_input_tokens > 300
    assert first.input_tokens == 0
    # The marks have moved; what was before them is still the same.
    assert then.cache_read_input_tokens == first.cache_creation_input_tokens
    assert then.cache_creation_input_tokens is not None
    assert 0 < then.cache_creation_input_tokens < 100


async def test_a_prompt_that_differs_in_its_beginning_is_not_read() -> None:
    async with ModelServer(scenario("turns: [{text: so, repeat: forever}]")) as server:
        await usage(server, block(LONG), block("hi"))
        other = await usage(server, block(f"{LONG}!"), block("hi"))
    assert other.cache_read_input_tokens == 0


async def test_a_prompt_without_marks_is_not_cached() -> None:
    async with ModelServer(scenario("turns: [{text: so, repeat: forever}]")) as server:
        for _ in range(2):
            plain = await usage(server, block(LONG, False), block("hi", False))
            assert (plain.cache_read_input_tokens, plain.cache_creation_input_tokens) == (0, 0)
            assert plain.input_tokens > 300
