"""Translates messages to the Messages API, with cache marks, and its answers back."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from anthropic import types

from toolagent_service.agents.conversation import sendable
from toolagent_service.contracts.model import Block, Carried, Message, ModelRequest, ModelTurn, Text, ToolOutcome, ToolUse, Usage

_Marked = types.TextBlockParam | types.ToolResultBlockParam
_MARK: types.CacheControlEphemeralParam = {"type": "ephemeral"}

_MARKED_MESSAGES = 2
"""The API takes four marks: the tools, the system prompt, and our last two messages. It looks back from a mark over twenty blocks only,
and a turn may have more: the mark before finds the cache of the last turn.
"""


def system_of(request: ModelRequest) -> list[types.TextBlockParam]:
    return [{"type": "text", "text": request.system, "cache_control": _MARK}] if request.system else []


def tools_of(request: ModelRequest) -> list[types.ToolParam]:
    tools: list[types.ToolParam] = [
        {"name": tool.name, "description": tool.description, "input_schema": {**tool.input_schema}} for tool in request.tools
    ]
    if tools:
        tools[-1]["cache_control"] = _MARK
    return tools


def messages_of(request: ModelRequest) -> list[types.MessageParam]:
    """Messages of alternating roles, none empty, the last ones of ours marked."""
    messages = sendable(request.messages)
    marked = [place for place, message in enumerate(messages) if message.role == "user"][-_MARKED_MESSAGES:]
    return [_message(message, marked=place in marked) for place, message in enumerate(messages)]


def turn_of(blocks: Sequence[Mapping[str, Any]], stop_reason: str, model: str, usage: Usage) -> ModelTurn:
    """Raises ValueError, KeyError for malformed blocks."""
    return ModelTurn(content=tuple(map(_block, blocks)), stop_reason=stop_reason, model=model, usage=usage)


def usage_of(counts: Mapping[str, Any]) -> Usage:
    """Missing counts are 0: endpoints without a cache leave some out."""
    return Usage(
        input_tokens=counts.get("input_tokens") or 0,
        output_tokens=counts.get("output_tokens") or 0,
        cache_read_tokens=counts.get("cache_read_input_tokens") or 0,
        cache_write_tokens=counts.get("cache_creation_input_tokens") or 0,
    )


def _message(message: Message, *, marked: bool) -> types.MessageParam:
    content = [_param(block) for block in message.content]
    if marked and isinstance(message.content[-1], Text | ToolOutcome):
        cast("_Marked", content[-1])["cache_control"] = _MARK
    # Carried blocks have the form that the API gave them.
    whole = cast("Sequence[types.TextBlockParam]", content)
    if message.role == "user":
        return types.UserMessageParam(role="user", content=whole)
    return types.AssistantMessageParam(role="assistant", content=whole)


def _param(block: Block) -> object:
    match block:
        case Text(text=text):
            return types.TextBlockParam(type="text", text=text)
        case ToolUse(id=use_id, name=name, input=arguments):
            return types.ToolUseBlockParam(type="tool_use", id=use_id, name=name, input={**arguments})
        case ToolOutcome(tool_use_id=use_id, content=content, is_error=is_error):
            return types.ToolResultBlockParam(type="tool_result", tool_use_id=use_id, content=content, is_error=is_error)
        case Carried(block=carried):
            return carried


def _block(block: Mapping[str, Any]) -> Block:
    match block["type"]:
        case "text":
            return Text(text=block["text"])
        case "tool_use":
            return ToolUse(id=block["id"], name=block["name"], input=block.get("input", {}))
        case _:
            return Carried(block={**block})
