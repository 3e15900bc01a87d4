"""A request to the Messages API, and the API's rules for conversations."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from toolagent.testing.servers.api_errors import ApiError
from toolagent.testing.servers.scenario import ToolName

__all__ = ["AskedMessage", "MessagesRequest", "ToolOutcomeView", "read_request"]

_MARKS = 4
"""The API allows so many cache_control marks."""

Blocks = Annotated[
    tuple[dict[str, JsonValue], ...],
    BeforeValidator(lambda content: [{"type": "text", "text": content}] if isinstance(content, str) else content),
]


@dataclass(frozen=True)
class ToolOutcomeView:
    """The result of the tool named `tool`, as it was sent back."""

    tool: str
    text: str
    is_error: bool

    @property
    def value(self) -> JsonValue:
        """The text as JSON, or the text if it is not JSON."""
        try:
            return cast("JsonValue", json.loads(self.text))
        except ValueError:
            return self.text


class _Asked(BaseModel):
    """Ignores the other fields of the API."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class AskedMessage(_Asked):
    role: Literal["user", "assistant", "system"]
    content: Blocks

    @property
    def text(self) -> str:
        return _text(self.content)

    def of_type(self, kind: str) -> tuple[dict[str, JsonValue], ...]:
        return tuple(block for block in self.content if block.get("type") == kind)


class _OfferedTool(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    name: ToolName
    input_schema: dict[str, JsonValue] | None = None


class MessagesRequest(_Asked):
    model: Annotated[str, Field(min_length=1)]
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    messages: Annotated[tuple[AskedMessage, ...], Field(min_length=1)]
    system: Blocks = ()
    tools: tuple[_OfferedTool, ...] = ()
    stream: bool = False

    @property
    def position(self) -> int:
        """The number of the model's messages. A repeated request has the same position, so it gets the same turn."""
        return sum(message.role == "assistant" for message in self.messages)

    @property
    def opening(self) -> str:
        """The text of the first user message."""
        return self.messages[0].text

    @property
    def last_user_text(self) -> str:
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def system_text(self) -> str:
        return _text(self.system)

    @cached_property
    def outcomes(self) -> tuple[tuple[ToolOutcomeView, ...], ...]:
        """The tool results of each message that has any, in order."""
        names = {str(use.get("id")): str(use.get("name")) for message in self.messages for use in message.of_type("tool_use")}

        def outcome(result: dict[str, JsonValue]) -> ToolOutcomeView:
            name, content = names.get(str(result.get("tool_use_id")), ""), result.get("content")
            blocks = tuple(block for block in content if isinstance(block, dict)) if isinstance(content, list) else ()
            return ToolOutcomeView(name, content if isinstance(content, str) else _text(blocks), result.get("is_error") is True)

        rounds = (message.of_type("tool_result") for message in self.messages)
        return tuple(tuple(map(outcome, results)) for results in rounds if results)

    def parts(self) -> Iterator[tuple[dict[str, JsonValue], bool]]:
        """Tools, system prompt and messages, block by block in the order of the prompt cache, and whether each has a cache mark."""
        spoken = [("system", block) for block in self.system]
        spoken += [(message.role, block) for message in self.messages for block in message.content]
        tools = [tool.model_dump(exclude_none=True) for tool in self.tools]
        for block in (*tools, *({"role": role, **block} for role, block in spoken)):
            yield {key: value for key, value in block.items() if key != "cache_control"}, block.get("cache_control") is not None


def read_request(body: bytes, for_an_answer: bool = True) -> MessagesRequest:
    """Raises ApiError if the API would refuse the request. `for_an_answer` is false if tokens are only counted."""
    try:
        request = MessagesRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        raise ApiError("invalid_request_error", f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}") from error
    faults = [*_faults(request)]
    if for_an_answer and request.max_tokens is None:
        faults.append("max_tokens: Field required")
    if faults:
        raise ApiError("invalid_request_error", faults[0])
    return request


def _faults(request: MessagesRequest) -> Iterator[str]:
    if request.messages[0].role != "user":
        yield "messages: first message must use the user role"
    names = [tool.name for tool in request.tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    for place, tool in enumerate(request.tools):
        if tool.input_schema is not None and tool.input_schema.get("type") != "object":
            yield f"tools.{place}.input_schema.type: must be 'object'"
    if sum(marked for _, marked in request.parts()) > _MARKS:
        yield f"A maximum of {_MARKS} blocks with cache_control may be provided."
    yield from _empty(request)
    yield from _unpaired(request)


def _empty(request: MessagesRequest) -> Iterator[str]:
    for place, message in enumerate(request.messages):
        if not message.content and place < len(request.messages) - 1:
            yield f"messages.{place}: all messages must have non-empty content except for the optional final assistant message"
        if any(not block.get("text") for block in message.of_type("text")):
            yield f"messages.{place}: text content blocks must be non-empty"


def _unpaired(request: MessagesRequest) -> Iterator[str]:
    """The faults of an agent that lost its place: uses without results, and results without uses."""
    used: set[str] = set()
    for place, message in enumerate(request.messages):
        answered = {str(result.get("tool_use_id")) for result in message.of_type("tool_result")}
        if missing := sorted(used - answered):
            yield (
                f"messages.{place - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
                "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        if unasked := sorted(answered - used):
            yield (
                f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unasked)}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if len(message.of_type("tool_result")) > len(answered):
            yield f"messages.{place}: each tool_use must have a single result."
        used = {str(use.get("id")) for use in message.of_type("tool_use")}
    if used:
        yield f"messages.{len(request.messages) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after."


def _text(blocks: tuple[dict[str, JsonValue], ...]) -> str:
    return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
