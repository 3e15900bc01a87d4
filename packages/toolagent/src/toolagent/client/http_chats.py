"""Conversations over HTTP."""

import json
from collections.abc import Generator

from httpx_sse import EventSource, SSEError
from pydantic import JsonValue, ValidationError

from toolagent.client.http_answers import UnexpectedAnswer, parsed, require_success
from toolagent.client.http_paths import query, segment
from toolagent.client.http_requests import Requests
from toolagent.contracts.chats import ChatListing, ChatReply, ChatView, Chunk

__all__ = ["ChatRequests"]


class ChatRequests(Requests):
    """The methods of `ToolAgentHttp` for conversations. They raise as its other methods do."""

    def chat(self, chat_id: str, message: str, key: str | None = None) -> ChatReply:
        """Say something and wait for the answer, however long it takes. The same idempotency key is the same message."""
        body: dict[str, JsonValue] = {"chat_id": chat_id, "message": message}
        return parsed(ChatReply, self._ask("POST", "/chat", body, unbounded=True, headers=_headers(key)))

    def chat_streamed(self, chat_id: str, message: str, key: str | None = None) -> Generator[Chunk | ChatReply]:
        """The parts of the answer as they are made, and the answer last. It is missing where the service stopped meanwhile: ask again."""
        body: dict[str, JsonValue] = {"chat_id": chat_id, "message": message, "stream": True}
        with self._streamed("/chat", _headers(key) or {}, "POST", body) as answer:
            require_success(answer)
            try:
                for event in EventSource(answer).iter_sse():
                    match event.event:
                        case "chunk":
                            yield Chunk.model_validate_json(event.data)
                        case "done":
                            yield ChatReply.model_validate_json(event.data)
                            return
                        case _:
                            pass
            except (ValidationError, SSEError, json.JSONDecodeError) as error:
                raise UnexpectedAnswer(answer) from error

    def chats(self, limit: int = 50, before: str | None = None) -> ChatListing:
        """The one that was spoken to last comes first."""
        return parsed(ChatListing, self._ask("GET", f"/chats{query(limit=limit, before=before)}"))

    def chat_history(self, chat_id: str, limit: int = 50, before: int | None = None) -> ChatView:
        """The last turns, or those before a number."""
        return parsed(ChatView, self._ask("GET", f"/chats/{segment(chat_id)}{query(limit=limit, before=before)}"))

    def delete_chat(self, chat_id: str) -> None:
        require_success(self._ask("DELETE", f"/chats/{segment(chat_id)}", unbounded=True))


def _headers(key: str | None) -> dict[str, str] | None:
    return {"Idempotency-Key": key} if key else None
