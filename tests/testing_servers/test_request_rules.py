"""The scripted model refuses the requests that the API refuses, so that an agent that loses its place is noticed."""

from collections.abc import Sequence

import httpx
import pytest
from pydantic import JsonValue

from tests.testing_servers.conversations import KEY, scenario
from toolagent.testing.servers.api_errors import ApiError
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.requests import read_request

HI: JsonValue = {"role": "user", "content": "hi"}
USE: JsonValue = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]}


def result(*ids: str) -> JsonValue:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one, "content": "seen"} for one in ids]}


def body(messages: Sequence[JsonValue], **fields: JsonValue) -> bytes:
    asked: dict[str, JsonValue] = {"model": "m", "max_tokens": 5, "messages": [*messages], **fields}
    return httpx.Request("POST", "http://x.test", json={key: value for key, value in asked.items() if value is not None}).content


def text(words: str, marked: bool = False) -> JsonValue:
    return {"type": "text", "text": words, **({"cache_control": {"type": "ephemeral"}} if marked else {})}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (body([]), "messages: Tuple should have at least 1 item"),
        (body([HI], model=None), "model: Field required"),
        (body([HI], max_tokens=None), "max_tokens: Field required"),
        (body([HI], max_tokens=0), "max_tokens: Input should be greater"),
        (body([{"role": "assistant", "content": "hi"}]), "first message must use the user role"),
        (body([{"role": "user", "content": ""}]), "text content blocks must be non-empty"),
        (body([{"role": "user", "content": []}, HI]), "must have non-empty content"),
        (body([HI, USE, {"role": "user", "content": "well?"}]), "messages.1: `tool_use` ids were found without `tool_result` blocks"),
        (body([HI, USE]), "messages.1: `tool_use` ids were found without"),
        (body([HI, USE, result("a", "b")]), "messages.2: unexpected `tool_use_id` found in `tool_result` blocks: b"),
        (body([HI, result("a")]), "unexpected `tool_use_id`"),
        (body([HI, USE, result("a"), USE, HI, result("a")]), "messages.3: `tool_use` ids were found without"),
        (body([HI, USE, result("a", "a")]), "single result"),
        (body([HI], tools=[{"name": "a b"}]), "tools.0.name: String should match"),
        (body([HI], tools=[{"name": "a"}, {"name": "a"}]), "Tool names must be unique"),
        (body([HI], tools=[{"name": "a", "input_schema": {"type": "array"}}]), "tools.0.input_schema.type: must be 'object'"),
        (body([{"role": "user", "content": [text("x", True)] * 3}], system=[text("x", True)] * 2), "A maximum of 4 blocks"),
        (b"{", "body: Invalid JSON"),
    ],
)
def test_what_the_api_refuses_is_refused(asked: bytes, reason: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_request(asked)
    assert refused.value.status == 400
    assert reason in str(refused.value)


def test_a_conversation_that_keeps_the_rules_passes() -> None:
    request = read_request(body([HI, USE, result("a"), {"role": "assistant", "content": [text("so")]}, HI], system="be kind", top_k=3))
    assert (request.position, request.opening, request.system_text) == (2, "hi", "be kind")


async def test_what_the_client_always_sends_must_be_there() -> None:
    async with ModelServer(scenario("turns: [{text: hi}]")) as server, httpx.AsyncClient(base_url=server.url) as client:
        keyless = await client.post("/v1/messages", content=body([HI]), headers={"anthropic-version": "2023-06-01"})
        versionless = await client.post("/v1/messages", content=body([HI]), headers={"x-api-key": KEY})
        by_token = {"authorization": f"Bearer {KEY}", "anthropic-version": "2023-06-01"}
        served = await client.post("/v1/messages", content=body([HI]), headers=by_token)
    assert (keyless.status_code, keyless.json()["error"]["type"]) == (401, "authentication_error")
    assert (versionless.status_code, versionless.json()["error"]["type"]) == (400, "invalid_request_error")
    assert served.status_code == 200


async def test_a_request_that_is_too_large_is_refused() -> None:
    async with ModelServer(scenario("turns: [{text: hi}]")) as server, httpx.AsyncClient(base_url=server.url) as client:
        large = body([{"role": "user", "content": "x" * 33 * 1024 * 1024}])
        refused = await client.post("/v1/messages", content=large, headers={"x-api-key": KEY, "anthropic-version": "2023-06-01"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (413, "request_too_large")
