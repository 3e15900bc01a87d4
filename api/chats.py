"""Answers messages, and shows, streams and deletes conversations."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import JsonValue
from pydantic_core import to_json
from starlette.responses import Response

from api.errors import Refusal, bad_field
from api.json_object import JsonObject
from api.ports import Dependencies
from api.problems import ProblemKind
from api.reading.chat_bodies import ChatBody
from api.views.event_streams import HEARTBEAT_S, LAST_EVENT_ID, RETRY_MS, EventStreams, position_of
from toolagent.client import names
from toolagent.client.failures import ChatRefusedError, ChatUnreachableError
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.chats import ChatEvent, ChatEventKind, ChatListing, ChatMessage, ChatReply, ChatRole, ChatView, ListedChat
from toolagent.core.chats import message_id_for
from toolagent.core.failures import StoreUnavailableError

_LOOK_S = 0.1
_IDLE_LOOK_S = 1.0
"""The longest pause between two looks at a chat. A look takes two queries, so pauses grow while nothing happens."""

_RETRY = {"Retry-After": "1"}

_NO_WINDOWS = "This process has no connection to an IM server: `python -m workers up` with TOOL_AGENT_IM_URL has one, and the functions."


async def answered(dependencies: Dependencies, body: ChatBody, key: str | None) -> ChatReply:
    """The answer to a message. Raises Refusal."""
    return await _said(dependencies, _message(dependencies, body, key), is_named=key is not None)


async def streamed(dependencies: Dependencies, body: ChatBody, key: str | None, streams: EventStreams) -> Response:
    """Streams the answer to a message while it is written. Raises Refusal, before the stream begins."""
    streams.require_room()
    message = _message(dependencies, body, key)
    before = await dependencies.chats.position_before(message.chat_id, message.message_id)
    answer = asyncio.create_task(_said(dependencies, message, is_named=key is not None), name=f"answer {message.message_id}")
    # Without this, asyncio would log the error of an answer whose client has gone.
    answer.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        while not answer.done() and not await dependencies.chats.of_message(message.chat_id, message.message_id):
            await asyncio.wait((answer,), timeout=_LOOK_S)
        # The turn may belong to another message with the same key, sent earlier or at this moment.
        await _require_same(dependencies, message)
    except BaseException:
        answer.cancel()
        raise
    if answer.done():
        answer.result()
    return streams.response(_written(dependencies, message, before, answer, streams))


async def listed(dependencies: Dependencies, limit: int, before: str | None) -> ChatListing:
    """A page of the chats before another one. Raises Refusal if that does not exist."""
    if before is not None and await dependencies.chats.get(before) is None:
        raise bad_field("before", "There is no such chat: give the `next` of the page before, or leave it out.")
    found = await dependencies.chats.page(limit=limit + 1, before=before)
    return ChatListing(chats=found[:limit], next=found[limit - 1].chat_id if len(found) > limit else None)


async def shown(dependencies: Dependencies, chat_id: str, limit: int, before: int | None) -> ChatView:
    """The last turns before a number. Raises Refusal."""
    chat = await _found(dependencies, chat_id)
    turns = await dependencies.chats.turns(chat_id, before=before, limit=limit)
    first = turns[0].number if turns else 1
    return ChatView(**dict(chat), turns=turns, before=first if first > 1 else None)


async def deleted(dependencies: Dependencies, chat_id: str) -> None:
    """Ends the chat's workflow and deletes its turns. Tasks that it began go on. Raises Refusal."""
    await _found(dependencies, chat_id)
    try:
        await dependencies.client.chats.close(chat_id)
    except ChatUnreachableError as away:
        raise _unreachable(away, "The chat is still there: delete it again.") from away
    await dependencies.chats.forget(chat_id)


async def followed(dependencies: Dependencies, chat_id: str, last: str | None, streams: EventStreams) -> Response:
    """Streams the events of a chat until it is deleted or the service stops. Raises Refusal."""
    streams.require_room()
    position = position_of(last)
    await _found(dependencies, chat_id)
    newest = await dependencies.chats.last_position(chat_id)
    if position > newest:
        message = f"The chat has no event {position}, its last is {newest}: leave the header out to begin with the first that is kept."
        raise bad_field(LAST_EVENT_ID, message)
    return streams.response(_happening(dependencies, chat_id, position, streams))


async def used_im_function(dependencies: Dependencies, name: str, given: JsonObject, key: str | None) -> JsonObject:
    """The result of a function, called once for each key. Raises Refusal without an IM client, ImUseRefusedError, ImKeyUsedError."""
    if dependencies.im_functions is None:
        raise Refusal(ErrorType.UNAVAILABLE, _NO_WINDOWS)
    return await dependencies.im_functions.run(name, given, key if key is not None else uuid.uuid4().hex)


async def _said(dependencies: Dependencies, message: ChatMessage, *, is_named: bool) -> ChatReply:
    """Raises Refusal, also if the key was used for another message."""
    try:
        # Also without a key: it fails if the database does not answer, before anything is said.
        await _require_same(dependencies, message)
        reply = await dependencies.client.chats.say(message)
    except ChatUnreachableError as away:
        remedy = "Say it again with the same Idempotency-Key, and it is said once; without one it may be answered twice."
        raise _unreachable(away, remedy) from away
    except ChatRefusedError as refused:
        raise _refused(refused) from refused
    if is_named:
        await _require_same(dependencies, message)
    return reply


async def _require_same(dependencies: Dependencies, message: ChatMessage) -> None:
    for turn in await dependencies.chats.of_message(message.chat_id, message.message_id):
        if turn.role is ChatRole.USER and turn.text != message.message:
            raise bad_field("Idempotency-Key", "It was used for other words. Choose a new one.", ProblemKind.IDEMPOTENCY_CONFLICT)


async def _written(
    dependencies: Dependencies, message: ChatMessage, position: int, answer: asyncio.Task[ChatReply], streams: EventStreams
) -> AsyncGenerator[bytes]:
    """`chunk` for each part of the answer, then `done`; without an answer, `error` with the refusal of a plain request."""
    yield format_sse_event(retry=RETRY_MS)
    try:
        async for event in _events(dependencies, message.chat_id, position, streams, _LOOK_S, answer.done):
            if event is None:
                yield KEEPALIVE_COMMENT
            elif event.message_id == message.message_id and event.event is not ChatEventKind.MESSAGE:
                yield _sent(event)
                if event.event is ChatEventKind.DONE:
                    return
        if answer.done():
            yield _ended(answer)
    finally:
        answer.cancel()


async def _happening(dependencies: Dependencies, chat_id: str, position: int, streams: EventStreams) -> AsyncGenerator[bytes]:
    yield format_sse_event(retry=RETRY_MS)
    async for event in _events(dependencies, chat_id, position, streams, _IDLE_LOOK_S, lambda: False):
        yield KEEPALIVE_COMMENT if event is None else _sent(event)


async def _events(
    dependencies: Dependencies, chat_id: str, position: int, streams: EventStreams, longest_s: float, is_over: Callable[[], bool]
) -> AsyncGenerator[ChatEvent | None]:
    """Yields events until `is_over`, with those before it, and None as a heartbeat. `longest_s` is the longest pause between looks."""
    spoken, pause_s = time.monotonic(), _LOOK_S
    while not streams.stopping.is_set():
        was_over = is_over()
        try:
            events = await dependencies.chats.events_after(chat_id, position)
            if not events and (was_over or await dependencies.chats.get(chat_id) is None):
                return
        except StoreUnavailableError:
            return  # the client asks again, by the key or the id of the last event that arrived
        for event in events:
            position, spoken, pause_s = event.position, time.monotonic(), _LOOK_S
            yield event
        if not events:
            if time.monotonic() - spoken >= HEARTBEAT_S:
                spoken = time.monotonic()
                yield None
            await streams.pause(pause_s)
            pause_s = min(2 * pause_s, longest_s)


def _sent(event: ChatEvent) -> bytes:
    named: JsonValue = {"message_id": event.message_id}
    data = {**event.data, **named} if isinstance(event.data, dict) else event.data
    return format_sse_event(event=event.event.value, data_str=to_json(data).decode(), id=str(event.position))


def _ended(answer: asyncio.Task[ChatReply]) -> bytes:
    """The last event of a message whose chat was deleted meanwhile, or that has no answer."""
    error = answer.exception()
    if error is None:
        return format_sse_event(event="done", data_str=answer.result().model_dump_json())
    told: JsonValue = {"type": error.kind.value, "detail": error.detail} if isinstance(error, Refusal) else {"type": "internal_error"}
    return format_sse_event(event="error", data_str=to_json(told).decode())


def _message(dependencies: Dependencies, body: ChatBody, key: str | None) -> ChatMessage:
    """Raises Refusal for a message that is too large."""
    most, size = dependencies.limits.max_message_bytes, len(body.message.encode())
    if size > most:
        told = f"It has {size} bytes; a message may have at most {most} (TOOL_AGENT_CHAT_MESSAGE_BYTES). POST /files takes files."
        raise bad_field("message", told, ProblemKind.BODY_TOO_LARGE)
    message_id = message_id_for(body.chat_id, key if key is not None else uuid.uuid4().hex)
    return ChatMessage(chat_id=body.chat_id, message=body.message, message_id=message_id)


async def _found(dependencies: Dependencies, chat_id: str) -> ListedChat:
    chat = await dependencies.chats.get(chat_id)
    if chat is None:
        raise Refusal(ProblemKind.CHAT_NOT_FOUND, f"There is no chat {chat_id!r}; GET /chats lists them, POST /chat opens one.")
    return chat


def _unreachable(away: ChatUnreachableError, remedy: str) -> Refusal:
    return Refusal(ErrorType.UNAVAILABLE, f"{away} {remedy}", headers=_RETRY)


def _refused(refused: ChatRefusedError) -> Refusal:
    match refused.type:
        case names.CHAT_FULL:
            return Refusal(ErrorType.REJECTED, str(refused), headers=_RETRY)
        case ErrorType.VALIDATION_ERROR:
            return Refusal(ProblemKind.INVALID_REQUEST, str(refused))
        case _:
            return Refusal(ErrorType.UNAVAILABLE, f"The chat could not answer: {refused}", headers=_RETRY)
