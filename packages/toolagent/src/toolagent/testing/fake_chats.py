"""Conversations without a service: the answer repeats the message."""

from dataclasses import dataclass, field

from toolagent.contracts.chats import AnsweredBy, ChatMessage, ChatReply

__all__ = ["FakeChats"]


@dataclass
class FakeChats:
    """`said` has each message once, `closed` the closed chats. Answers have `task_ids`. `failure` is raised instead of an answer."""

    said: dict[str, ChatMessage] = field(default_factory=dict[str, ChatMessage])
    closed: list[str] = field(default_factory=list[str])
    failure: Exception | None = None
    task_ids: tuple[str, ...] = ()

    async def say(self, message: ChatMessage) -> ChatReply:
        if self.failure is not None:
            raise self.failure
        said = self.said.setdefault(message.message_id, message)
        return ChatReply(
            response=f"You said: {said.message}",
            chat_id=said.chat_id,
            message_id=said.message_id,
            task_ids=self.task_ids,
            answered_by=AnsweredBy.RULES,
        )

    async def close(self, chat_id: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.closed.append(chat_id)
