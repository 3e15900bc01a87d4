"""Helpers for tests of the scripted model: scenarios as text, the real client, and messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic.types import ContentBlock, Message, MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

from toolagent.testing.servers.documents import parsed
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import Scenario

__all__ = ["KEY", "MODEL", "TOOL", "At", "ask", "ask_streamed", "client_of", "counts", "outcome", "said", "scenario", "user", "uses"]

KEY = "sk-test-0123456789"
MODEL = "scripted-model"
TOOL: ToolParam = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}}}


class Addressed(Protocol):
    @property
    def url(self) -> str: ...


@dataclass(frozen=True)
class At:
    """The address of a server."""

    url: str


def scenario(text: str) -> Scenario:
    return parsed(text, Scenario, "scenario.yaml")


def client_of(url: str, key: str = KEY) -> AsyncAnthropic:
    """The client as Tool Agent uses it, without its own retries."""
    # Loading the machine's certificates takes longer than a test.
    plain = DefaultAsyncHttpxClient(base_url=url, verify=False, trust_env=False)
    return AsyncAnthropic(api_key=key, base_url=url, max_retries=0, timeout=20, http_client=plain)


def user(*content: str | ToolResultBlockParam) -> MessageParam:
    return {"role": "user", "content": [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]}


def outcome(use: ToolUseBlock, content: str, is_error: bool = False) -> ToolResultBlockParam:
    return {"type": "tool_result", "tool_use_id": use.id, "content": content, "is_error": is_error}


def said(message: Message) -> MessageParam:
    return {"role": "assistant", "content": message.content}


def uses(content: Sequence[ContentBlock]) -> list[ToolUseBlock]:
    return [block for block in content if block.type == "tool_use"]


async def ask(server: Addressed, *messages: MessageParam, key: str = KEY, model: str = MODEL) -> Message:
    async with client_of(server.url, key) as client:
        return await client.messages.create(model=model, max_tokens=500, messages=messages, tools=[TOOL])


async def ask_streamed(server: Addressed, *messages: MessageParam) -> Message:
    async with (
        client_of(server.url) as client,
        client.messages.stream(model=MODEL, max_tokens=500, messages=messages, tools=[TOOL]) as stream,
    ):
        return await stream.get_final_message()


def counts(server: ModelServer) -> list[tuple[int, int, int]]:
    """For each turn: its number, and how often it was asked for and served."""
    return [(one.turn, one.asked, one.served) for one in server.turns()]
