"""Each fault, as the real client sees it."""

from collections.abc import Awaitable, Callable

import httpx2
import pytest
from anthropic import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    OverloadedError,
    PermissionDeniedError,
    RateLimitError,
)
from anthropic.types import Message

from tests.testing_servers.conversations import MODEL, ask, ask_streamed, client_of, counts, scenario, user
from toolagent.testing.servers.model_server import ModelServer

Ask = Callable[..., Awaitable[Message]]
BOTH = pytest.mark.parametrize("asked", [ask, ask_streamed])
TURN = "text: Some words that come in several pieces, tool_use: {name: look, input: {at: the whole of the sky}}"


def faulty(fault: str) -> ModelServer:
    return ModelServer(scenario(f"turns: [{{{TURN}, fault: {fault}}}]"))


@BOTH
@pytest.mark.parametrize(
    ("fault", "error", "kind", "status"),
    [
        ("rate_limit", RateLimitError, "rate_limit_error", 429),
        ("overloaded", OverloadedError, "overloaded_error", 529),
        ("server_error", InternalServerError, "api_error", 500),
        ("unauthorized", AuthenticationError, "authentication_error", 401),
        ("forbidden", PermissionDeniedError, "permission_error", 403),
        ("invalid_request", BadRequestError, "invalid_request_error", 400),
    ],
)
async def test_a_fault_with_a_status_comes_before_the_turn(
    asked: Ask, fault: str, error: type[APIStatusError], kind: str, status: int
) -> None:
    async with faulty(fault) as server:
        with pytest.raises(error) as raised:
            await asked(server, user("hi"))
        assert (raised.value.type, raised.value.status_code) == (kind, status)
        assert raised.value.request_id is not None
        assert (await asked(server, user("hi"))).stop_reason == "tool_use"
        assert counts(server) == [(1, 2, 1)]


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server_error"])
async def test_when_to_ask_again_is_said(kind: str) -> None:
    async with faulty(f"{{kind: {kind}, retry_after: 1.5, message: too many}}") as server:
        with pytest.raises(APIStatusError) as raised:
            await ask(server, user("hi"))
    assert raised.value.response.headers["retry-after"] == "1.5"
    assert raised.value.api_message == "too many"


async def test_faults_come_in_order_and_as_often_as_they_should() -> None:
    came: list[int] = []
    async with faulty("[{kind: rate_limit, times: 2}, overloaded]") as server:
        for _ in range(3):
            with pytest.raises(APIStatusError) as raised:
                await ask(server, user("hi"))
            came.append(raised.value.status_code)
        await ask(server, user("hi"))
        assert [(one.asked, one.faults, one.served) for one in server.turns()] == [(4, 3, 1)]
    assert came == [429, 429, 529]


async def test_a_fault_may_stay_forever() -> None:
    async with faulty("{kind: overloaded, times: forever}") as server:
        for _ in range(5):
            with pytest.raises(OverloadedError):
                await ask(server, user("hi"))
        assert counts(server) == [(1, 5, 0)]


async def test_a_cut_breaks_the_connection_in_the_middle() -> None:
    async with faulty("{kind: cut, times: 2}") as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            await ask_streamed(server, user("hi"))
        with pytest.raises(APIConnectionError):
            await ask(server, user("hi"))
        assert counts(server) == [(1, 2, 0)]
        assert (await ask_streamed(server, user("hi"))).stop_reason == "tool_use"
        assert counts(server) == [(1, 3, 1)]


async def test_a_stream_that_ends_early_looks_whole_but_has_no_reason_to_stop() -> None:
    async with faulty("ended_early") as server:
        message = await ask_streamed(server, user("hi"))
        assert message.stop_reason is None
        assert len(message.content) > 0
        assert counts(server) == [(1, 1, 0)]


async def test_malformed_is_no_json() -> None:
    async with faulty("{kind: malformed, times: 2}") as server:
        with pytest.raises(ValueError, match="Unterminated string"):
            await ask_streamed(server, user("hi"))
        with pytest.raises(ValueError, match=r"delimiter|Unterminated|Expecting"):
            await ask(server, user("hi"))
        assert counts(server) == [(1, 2, 0)]


async def test_an_error_may_come_in_the_middle_of_a_stream() -> None:
    async with faulty("{kind: error_event, times: 2}") as server:
        with pytest.raises(APIStatusError) as raised:
            await ask_streamed(server, user("hi"))
        assert (raised.value.type, raised.value.status_code) == ("overloaded_error", 200)
        with pytest.raises(OverloadedError):
            await ask(server, user("hi"))


async def test_a_slow_turn_outlasts_a_client_that_does_not_wait_and_is_not_served_to_it() -> None:
    async with faulty("{kind: slow, seconds: 30}") as server, client_of(server.url) as client:
        with pytest.raises(APITimeoutError):
            await client.messages.create(model=MODEL, max_tokens=5, messages=[user("hi")], timeout=0.3)
        assert counts(server) == [(1, 1, 0)]
        assert (await ask(server, user("hi"))).stop_reason == "tool_use"
        assert counts(server) == [(1, 2, 1)]


@BOTH
async def test_a_slow_turn_comes_in_the_end(asked: Ask) -> None:
    async with faulty("{kind: slow, seconds: 0.2}") as server:
        assert (await asked(server, user("hi"))).stop_reason == "tool_use"
        assert counts(server) == [(1, 1, 1)]


async def test_a_client_that_hangs_up_in_the_middle_was_not_served() -> None:
    brief, long = f"{{name: brief, when: brief, turns: [{{{TURN}, seconds: 0.2}}]}}", f"{{name: long, turns: [{{{TURN}, seconds: 1}}]}}"
    async with ModelServer(scenario(f"conversations: [{brief}, {long}]")) as server:
        async with client_of(server.url) as client, client.messages.stream(model=MODEL, max_tokens=5, messages=[user("brief")]) as stream:
            await anext(aiter(stream))
        # By the end of this the other would have come to its end, too.
        await ask(server, user("hi"))
        assert [(one.conversation, one.asked, one.served) for one in server.turns()] == [("brief", 1, 0), ("long", 1, 1)]
