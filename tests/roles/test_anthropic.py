"""Our use of the Messages API: cache marks, odd answers, waiting times, and settings that come from the options only."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.roles.provider import BusyKind, ModelBusy, ModelFailure, ModelRefused, RefusedKind
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic import AnthropicProvider
from engine.roles.providers.anthropic_failures import retry_after_s
from engine.roles.providers.anthropic_wire import messages_of, system_of, tools_of
from toolagent.testing.servers.serving import ServerThread
from toolagent_service.contracts.model import Carried, Message, ModelRequest, ModelTurn, Text, ToolOffer, ToolOutcome, ToolUse

KEY = "sk-test-0123456789abcdef"
SAYS = Message(role="user", content=(Text(text="Hello."),))
REQUEST = ModelRequest(system="You are tried out.", messages=(SAYS,), max_tokens=100)


@contextmanager
def _endpoint(answer: Response, seen: list[Request] | None = None) -> Generator[str]:
    async def messages(request: Request) -> Response:
        if seen is not None:
            await request.body()
            seen.append(request)
        return answer

    with ServerThread(Starlette(routes=[Route("/v1/messages", messages, methods=["POST"])])) as server:
        yield server.url


async def _ask(url: str, request: ModelRequest = REQUEST, key: str | None = KEY) -> ModelTurn:
    provider = AnthropicProvider(ProviderOptions(model="m", api_key=key, base_url=url))
    try:
        return await provider.ask(request, lambda _: None)
    finally:
        await provider.aclose()


async def _failure(answer: Response, key: str = KEY) -> ModelFailure:
    with _endpoint(answer) as url, pytest.raises(ModelFailure) as failure:
        await _ask(url, key=key)
    return failure.value


def _error(status: int, kind: str, message: str = "no", **details: JsonValue) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": message, "details": details}}
    return Response(json.dumps(body), status, media_type="application/json")


def _stream(*events: dict[str, JsonValue]) -> Response:
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Response(text, media_type="text/event-stream")


def _started(**usage: JsonValue) -> dict[str, JsonValue]:
    message: JsonValue = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return {"type": "message_start", "message": message}


def _block(index: int, block: dict[str, JsonValue], *deltas: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _ended(stop_reason: str = "end_turn") -> list[dict[str, JsonValue]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def _use(*pieces: str, stop_reason: str = "tool_use") -> Response:
    deltas: list[dict[str, JsonValue]] = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    block: dict[str, JsonValue] = {"type": "tool_use", "id": "1", "name": "x", "input": {}}
    return _stream(_started(input_tokens=3, output_tokens=0), *_block(0, block, *deltas), *_ended(stop_reason))


def test_tools_system_and_the_last_two_messages_of_ours_are_marked_for_the_cache() -> None:
    use = Message(role="assistant", content=(ToolUse(id="1", name="a"),))
    outcome = Message(role="user", content=(ToolOutcome(tool_use_id="1", content="ok"), Text(text="Go on.")))
    offers = tuple(ToolOffer(name=name, description=name, input_schema={"type": "object"}) for name in "ab")
    request = ModelRequest(system="s", tools=offers, messages=(SAYS, use, outcome, use, outcome), max_tokens=1)
    marks = [["cache_control" in block for block in message["content"] if isinstance(block, dict)] for message in messages_of(request)]
    assert marks == [[False], [False], [False, True], [False], [False, True]]
    assert ["cache_control" in tool for tool in tools_of(request)] == [False, True]
    assert ["cache_control" in block for block in system_of(request)] == [True]


def test_what_is_carried_goes_back_as_it_came() -> None:
    thinking: dict[str, JsonValue] = {"type": "thinking", "thinking": "", "signature": "signed", "new": [1, {"a": None}]}
    answer = Message(role="assistant", content=(Carried(block=thinking), Text(text="Yes.")))
    request = ModelRequest(system="s", messages=(SAYS, answer, SAYS), max_tokens=1)
    assert messages_of(request)[1] == {"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]}


async def test_blocks_that_are_not_known_are_carried() -> None:
    block: dict[str, JsonValue] = {"type": "what_is_new", "payload": {"a": [1]}}
    with _endpoint(_stream(_started(input_tokens=3, output_tokens=0), *_block(0, block), *_ended())) as url:
        turn = await _ask(url)
    assert turn.content == (Carried(block=block),)


async def test_a_call_without_arguments_and_one_in_pieces_are_whole() -> None:
    with _endpoint(_use()) as url:
        assert (await _ask(url)).content == (ToolUse(id="1", name="x"),)
    with _endpoint(_use('{"a": ', '[1, "é"]', "}")) as url:
        assert (await _ask(url)).content == (ToolUse(id="1", name="x", input={"a": [1, "é"]}),)


@pytest.mark.parametrize("written", ['{"a": [1, 2', '{"a": nonsense}', "[1]", '"text"'])
async def test_arguments_that_are_no_object_are_malformed(written: str) -> None:
    failure = await _failure(_use(written))
    assert isinstance(failure, ModelBusy)
    assert failure.kind is BusyKind.MALFORMED
    assert failure.usage is not None


async def test_half_a_call_is_told_as_it_came_where_the_answer_was_cut_for_its_length() -> None:
    with _endpoint(_use('{"path": "main.py", "content": "imp', stop_reason="max_tokens")) as url:
        turn = await _ask(url)
    assert turn.stop_reason == "max_tokens"
    assert isinstance(turn.content[0], ToolUse)


@pytest.mark.parametrize(
    "answer",
    [
        Response("<html>Sign in</html>", media_type="text/html"),
        Response("", media_type="text/event-stream"),
        _stream({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}, *_ended()),
        _stream(_started(input_tokens=1, output_tokens=0), {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta"}}),
        _stream({"type": "message_start"}),
        Response("event: message_start\ndata: [1, 2]\n\n", media_type="text/event-stream"),
    ],
)
async def test_what_is_no_answer_of_the_protocol_is_malformed(answer: Response) -> None:
    failure = await _failure(answer)
    assert isinstance(failure, ModelBusy)
    assert failure.kind is BusyKind.MALFORMED


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (_error(402, "billing_error"), RefusedKind.PAYMENT),
        (_error(429, "rate_limit_error", error_code="enforced_spend_limit_reached"), RefusedKind.PAYMENT),
        (_error(413, "request_too_large"), RefusedKind.TOO_LARGE),
        (_error(422, "invalid_request_error"), RefusedKind.BAD_REQUEST),
        (_error(400, "authentication_error"), RefusedKind.UNAUTHENTICATED),
        (Response("nginx", 403), RefusedKind.FORBIDDEN),
    ],
)
async def test_what_will_not_work_is_refused(answer: Response, kind: RefusedKind) -> None:
    failure = await _failure(answer)
    assert isinstance(failure, ModelRefused)
    assert failure.kind is kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (_error(529, "overloaded_error"), BusyKind.OVERLOADED),
        (Response("bad gateway", 502), BusyKind.SERVER),
        (Response("", 504), BusyKind.TIMEOUT),
        (_error(409, "conflict"), BusyKind.SERVER),
        (_error(408, "timeout"), BusyKind.TIMEOUT),
    ],
)
async def test_what_may_pass_is_busy(answer: Response, kind: BusyKind) -> None:
    failure = await _failure(answer)
    assert isinstance(failure, ModelBusy)
    assert failure.kind is kind


async def test_a_server_that_repeats_the_key_does_not_spread_it() -> None:
    failure = await _failure(_error(401, "authentication_error", f"no such key: {KEY}{'x' * 10_000}"))
    assert KEY not in failure.message
    assert "TOOL_AGENT_MODEL_API_KEY" in failure.message
    assert len(failure.message) < 1_000


async def test_a_key_that_is_hardly_one_does_not_spoil_the_words() -> None:
    failure = await _failure(_error(401, "authentication_error", "no such key, ask the desk"), key="k")
    assert "no such key, ask the desk" in failure.message


async def test_nothing_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-other: from-the-environment\nanthropic-beta: from-the-environment")
    seen: list[Request] = []
    text: dict[str, JsonValue] = {"type": "text", "text": ""}
    answer = _stream(_started(input_tokens=1, output_tokens=0), *_block(0, text, {"type": "text_delta", "text": "Hi."}), *_ended())
    with _endpoint(answer, seen) as url:
        assert (await _ask(url, key=None)).content == (Text(text="Hi."),)
    assert not any("from-the-environment" in value for value in seen[0].headers.values())


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": format_datetime(datetime.now(UTC) - timedelta(hours=1))}, 0.0),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers) == expected


def test_a_moment_to_wait_for_is_a_number_of_seconds() -> None:
    seconds = retry_after_s({"retry-after": format_datetime(datetime.now(UTC) + timedelta(minutes=1))})
    assert seconds is not None
    assert 50 < seconds <= 60
