"""The role that answers chats: it reads the registry and submits tasks."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from pydantic import JsonValue

from activities.agent_tool import AgentToolUnavailable, Used
from activities.agents.models import refusal
from activities.agents.role import AgentRole, PendingUse
from activities.chat_tools import CHAT_TOOLS
from engine.chats.desk import Desk, Tables
from engine.chats.written import Chunks, written_down
from engine.roles.heard import Heard
from engine.tasks.transcript import Transcript
from toolagent.client.failures import MakingUnreachableError
from toolagent.contracts.chats import Chunk
from toolagent_service.agents.service import SERVICE
from toolagent_service.contracts.agent import SERVICE as NAME
from toolagent_service.contracts.agent import ModelAsk

Told = Callable[[str], Awaitable[str | None]]
"""The first message of a conversation; None if its chat was deleted."""


class ServiceRole(AgentRole[Desk]):
    """Each conversation is about one message of a chat. Followers of the chat see the text and the uses of tools."""

    def __init__(self, tables: Tables, chunks: Chunks, told: Told) -> None:
        super().__init__(NAME, SERVICE, CHAT_TOOLS)
        self._tables, self._chunks, self._told = tables, chunks, told

    async def site(self, use: PendingUse) -> Desk:
        chat_id = await self._chunks.chat_of(use.run.conversation_id) or ""
        return Desk(chat_id=chat_id, key=f"{use.run.conversation_id}/{use.key}", tables=self._tables)

    async def opening(self, conversation_id: str, kept: Transcript) -> str:
        del kept
        told = await self._told(conversation_id)
        if told is None:
            raise refusal("The chat was deleted.")
        return told

    async def use(self, given: dict[str, JsonValue], use: PendingUse) -> Used:
        conversation = use.run.conversation_id
        await self._chunks.add_chunks(conversation, (Chunk(type="tool_use", data={"name": use.run.name, "input": given}),))
        try:
            used = await super().use(given, use)
        except MakingUnreachableError as away:
            raise AgentToolUnavailable(str(away)) from away
        told: JsonValue = {"name": use.run.name, "tool_ids": [*used.tool_ids], "task_ids": [*used.task_ids]}
        await self._chunks.add_chunks(conversation, (Chunk(type="tool_result", data=told),))
        return used

    @asynccontextmanager
    async def listening(self, ask: ModelAsk, attempt: int) -> AsyncGenerator[Heard]:
        # After a remark the model answers again, and the cut-off text before does not count.
        async with written_down(self._chunks, ask.conversation_id, is_again=attempt > 1 or bool(ask.remarks)) as heard:
            yield heard
