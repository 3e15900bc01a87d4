"""Conversations."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.chats import answered, deleted, followed, listed, shown, streamed
from api.documentation import JSON_BODY, problem_responses
from api.errors import json_response
from api.making import Key
from api.ports import Injected, dependencies_of
from api.problems import ProblemKind
from api.reading.chat_bodies import ChatBody
from api.reading.encoded_paths import ChatInPath, EncodedRoute
from api.views.event_streams import LastEventId
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.chats import ChatId, ChatListing, ChatReply, ChatView

router = APIRouter(tags=["chats"], route_class=EncodedRoute)

_OF_A_CHAT = problem_responses(ProblemKind.INVALID_REQUEST, ProblemKind.CHAT_NOT_FOUND, ErrorType.UNAVAILABLE)
_STREAM = """event: chunk
data: {"type":"text","data":"There is image_stitcher","message_id":"msg-…"}
id: 2

event: done
data: {"response":"There is image_stitcher …","chat_id":"user_A_window_1","message_id":"msg-…","tools":["image_stitcher"],"task_ids":[]}
id: 3
"""


@router.post(
    "/chat",
    summary="Say something, and have the answer",
    response_model=ChatReply,
    responses={
        **problem_responses(*JSON_BODY, ProblemKind.IDEMPOTENCY_CONFLICT, ErrorType.REJECTED, ErrorType.UNAVAILABLE),
        200: {"description": "The answer; with `stream` as it is written.", "content": {"text/event-stream": {"example": _STREAM}}},
    },
)
async def chat(body: ChatBody, request: Request, idempotency_key: Key = None) -> Response:
    """Messages of one chat are answered one after the other. `error` says why a message has no answer."""
    dependencies = dependencies_of(request)  # without `Depends`: see `StrictRoute`
    if body.stream:
        return await streamed(dependencies, body, idempotency_key, request.app.state.streams)
    return json_response(await answered(dependencies, body, idempotency_key))


@router.get(
    "/chats",
    summary="Conversations, the one that was spoken to last first",
    responses=problem_responses(ProblemKind.INVALID_REQUEST, ErrorType.UNAVAILABLE),
)
async def list_chats(
    dependencies: Injected,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[ChatId | None, Query(description="`next` of the page before.")] = None,
) -> ChatListing:
    return await listed(dependencies, limit, before)


@router.get("/chats/{chat_id}", summary="What was said in a conversation", responses=_OF_A_CHAT)
async def get_chat(
    chat_id: ChatInPath,
    dependencies: Injected,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[
        int | None, Query(ge=1, le=2_147_483_647, description="Only turns before this number: `before` of the page before.")
    ] = None,
) -> ChatView:
    """The last turns, in order."""
    return await shown(dependencies, chat_id, limit, before)


@router.delete("/chats/{chat_id}", summary="Forget a conversation", status_code=204, responses=_OF_A_CHAT)
async def delete_chat(chat_id: ChatInPath, dependencies: Injected) -> None:
    """An answer under way is cancelled. Tasks that the conversation began go on."""
    await deleted(dependencies, chat_id)


@router.get(
    "/chats/{chat_id}/events",
    summary="What happens in a conversation, as it happens",
    response_class=StreamingResponse,
    responses={
        **_OF_A_CHAT,
        200: {"description": "Server-sent events", "content": {"text/event-stream": {"example": _STREAM}}},
    },
)
async def get_chat_events(chat_id: ChatInPath, request: Request, dependencies: Injected, last_event_id: LastEventId = None) -> Response:
    """`message` for each turn, `chunk` for parts of an answer, `done` for each answer. Continue with the `id` of the last event."""
    return await followed(dependencies, chat_id, last_event_id, request.app.state.streams)
