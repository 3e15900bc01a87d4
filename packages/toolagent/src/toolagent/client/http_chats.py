"""Conversations over HTTP."""

from collections.abc import Generator

from pydantic import JsonValue

from toolagent.client.http_answers import events_of, require_success
from toolagent.client.http_paths import path_of
from toolagent.client.http_requests import Requests
from toolagent.contracts.chats import ChatListing, ChatReply, ChatView, Chunk

__all__ = ["ChatRequests"]


class ChatRequests(Requests):
    """The methods of `ToolAgentHttp` for conversations. They raise the same errors as its others."""

    def chat(self, chat_id: str, message: str, key: str | None = None) -> ChatReply:
        """Send a message and wait for the answer, without a time limit. The same idempotency key is the same message."""
        body: dict[str, JsonValue] = {"chat_id": chat_id, "message": message}
        return self._post(ChatReply, "chat", body=body, unbounded=True, headers=_headers(key))

    def chat_streamed(self, chat_id: str, message: str, key: str | None = None) -> Generator[Chunk | ChatReply]:
        """The parts of the answer as they are made, and last the whole answer. It is missing if the service stopped: ask again."""
        body: dict[str, JsonValue] = {"chat_id": chat_id, "message": message, "stream": True}
        with self._streamed("/chat", _headers(key) or {}, "POST", body) as answer:
            for event in events_of(answer, {"chunk": Chunk, "done": ChatReply}):
                yield event
                if isinstance(event, ChatReply):
                    return

    def chats(self, limit: int = 50, before: str | None = None) -> ChatListing:
        """Chats, the last used first."""
        return self._get(ChatListing, "chats", limit=limit, before=before)

    def chat_history(self, chat_id: str, limit: int = 50, before: int | None = None) -> ChatView:
        """The last turns, or those before a number."""
        return self._get(ChatView, "chats", chat_id, limit=limit, before=before)

    def delete_chat(self, chat_id: str) -> None:
        require_success(self._ask("DELETE", path_of("chats", chat_id), unbounded=True))


def _headers(key: str | None) -> dict[str, str] | None:
    return {"Idempotency-Key": key} if key else None
