"""A scenario: the answers of a scripted model, turn by turn, and the requests it expects.

Text in a turn may refer to the conversation (`toolagent.testing.servers.references`).
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self, cast

from pydantic import BeforeValidator, Field, JsonValue, PositiveInt, model_validator

from toolagent.testing.servers.documents import Part, read_document

__all__ = [
    "Block",
    "Conversation",
    "Expectation",
    "Fault",
    "FaultKind",
    "Forever",
    "Scenario",
    "StopReason",
    "TextBlock",
    "ThinkingBlock",
    "ToolName",
    "ToolUseBlock",
    "Turn",
    "TurnUsage",
    "load_scenario",
    "scenario_schema",
]

Forever = Literal["forever"]
StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"]


ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


def _listed(value: object) -> Sequence[object]:
    """A single value stands for a list of one."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)


def _kind_alone(value: object) -> Sequence[object]:
    return [{"kind": one} if isinstance(one, str) else one for one in _listed(value)]


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])]


class TextBlock(Part):
    type: Literal["text"] = "text"
    text: Annotated[str, Field(min_length=1)]


class ToolUseBlock(Part):
    type: Literal["tool_use"] = "tool_use"
    name: ToolName
    input: dict[str, JsonValue] = {}


class ThinkingBlock(Part):
    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""


ToolUses = Annotated[tuple[ToolUseBlock, ...], BeforeValidator(_listed, json_schema_input_type=ToolUseBlock | tuple[ToolUseBlock, ...])]
Block = Annotated[TextBlock | ToolUseBlock | ThinkingBlock, Field(discriminator="type")]


class FaultKind(StrEnum):
    """What can go wrong with a request. The first six are answers with a status, the others disturb the answer on its way."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    INVALID_REQUEST = "invalid_request"
    CUT = "cut"
    ENDED_EARLY = "ended_early"
    MALFORMED = "malformed"
    ERROR_EVENT = "error_event"
    SLOW = "slow"


class Fault(Part):
    """Comes `times` times before the turn is given. `rate_limit` alone is short for `{kind: rate_limit}`."""

    kind: Annotated[
        FaultKind,
        Field(
            description="rate_limit 429, overloaded 529, server_error 500, unauthorized 401, forbidden 403, invalid_request 400; "
            "cut: the connection breaks in the middle; ended_early: the stream ends in the middle as if it were whole (not streamed: cut); "
            "malformed: broken JSON; error_event: the stream ends with an error event; slow: nothing comes for `seconds`, then the turn."
        ),
    ]
    times: PositiveInt | Forever = 1
    retry_after: Annotated[float | None, Field(ge=0)] = None
    """Seconds, sent as the header retry-after."""
    seconds: Annotated[float, Field(ge=0)] = 30.0
    """With slow: how long nothing comes."""
    message: str | None = None
    """Instead of the default message."""


Tokens = Annotated[int | None, Field(ge=0)]


class TurnUsage(Part):
    """Tokens. Unset counts are estimated: one token for four characters, caching by the request's cache_control marks."""

    input_tokens: Tokens = None
    output_tokens: Tokens = None
    cache_creation_input_tokens: Tokens = None
    cache_read_input_tokens: Tokens = None


class Expectation(Part):
    """What the request for this turn must contain. Any other request is answered with 400 and remembered."""

    last_result: Texts = ()
    """Each occurs in one of the latest tool results."""
    last_result_json: JsonValue = None
    """A part of the latest tool result, as JSON."""
    is_error: bool | None = None
    """Whether one of the latest tool results is an error."""
    user: Texts = ()
    """Each occurs in the text of the last user message."""
    system: Texts = ()
    """Each occurs in the system prompt."""
    tools: Texts = ()
    """Each is the name of a tool that is offered."""
    nowhere: Texts = ()
    """Each occurs nowhere in the request."""


class Turn(Part):
    """One answer of the model."""

    text: str = ""
    """Comes before the tool uses."""
    tool_use: ToolUses = ()
    content: tuple[Block, ...] = ()
    """Blocks in any order, instead of text and tool_use."""
    stop_reason: StopReason | None = None
    """By default tool_use if a tool is used, else end_turn."""
    stop_sequence: str | None = None
    usage: TurnUsage = TurnUsage()
    seconds: Annotated[float | None, Field(ge=0)] = None
    """How long the answer takes; a stream comes evenly in that time."""
    fault: Annotated[
        tuple[Fault, ...],
        BeforeValidator(_kind_alone, json_schema_input_type=FaultKind | Fault | tuple[FaultKind | Fault, ...]),
    ] = ()
    """The faults before the turn, in order."""
    expect: Expectation = Expectation()
    repeat: PositiveInt | Forever = 1
    """Given so many times in a row, as so many turns."""

    @model_validator(mode="after")
    def _can_be_given(self) -> Self:
        if any(fault.times == "forever" for fault in self.fault[:-1]):
            raise ValueError("a fault that comes forever is followed by another; make it the last")
        if self.content and (self.text or self.tool_use):
            raise ValueError("a turn has content, or text and tool_use; remove one")
        if not self.blocks and self.stop_reason is None:
            raise ValueError("a turn says nothing; give it text or tool_use, or a stop_reason if it shall be empty")
        return self

    @property
    def blocks(self) -> tuple[TextBlock | ToolUseBlock | ThinkingBlock, ...]:
        """Its content, in order."""
        return self.content or (*((TextBlock(text=self.text),) if self.text else ()), *self.tool_use)


class Conversation(Part):
    name: str = "conversation"
    when: Annotated[str | None, Field(min_length=1)] = None
    """Text that occurs in the first user message; without it all fit."""
    expect: Expectation = Expectation()
    """Of every turn."""
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if any(turn.repeat == "forever" for turn in self.turns[:-1]):
            raise ValueError("a turn that is repeated forever is followed by another; make it the last")
        return self

    def turn(self, position: int) -> Turn | None:
        """The turn at a position, from 0 on; None after the end of the conversation."""
        end = 0
        for turn in self.turns:
            if turn.repeat == "forever":
                return turn
            end += turn.repeat
            if position < end:
                return turn
        return None

    @property
    def length(self) -> int:
        """The number of turns, without one that is repeated forever."""
        return sum(turn.repeat for turn in self.turns if turn.repeat != "forever")


class Scenario(Part):
    """Either `turns`, or several `conversations`."""

    name: str = "scenario"
    key: Annotated[str | None, Field(min_length=1)] = None
    """The API key that must be sent; without it any will do."""
    models: tuple[str, ...] = ()
    """The models there are; without them every name will do."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """How long a turn takes that does not say so itself."""
    expect: Expectation = Expectation()
    """Of every turn."""
    turns: tuple[Turn, ...] = ()
    conversations: tuple[Conversation, ...] = ()

    @model_validator(mode="after")
    def _is_unambiguous(self) -> Self:
        if bool(self.turns) is bool(self.conversations):
            raise ValueError("a scenario has either turns or conversations; give one of them")
        if self.turns:
            Conversation(turns=self.turns)
        names = [one.name for one in self.conversations]
        if len(set(names)) < len(names):
            raise ValueError("two conversations have the same name; give each a name of its own")
        if any(one.when is None for one in self.conversations[:-1]):
            raise ValueError("only the last conversation may do without `when`; those after it would never be chosen")
        return self

    def all_conversations(self) -> Iterator[Conversation]:
        yield from self.conversations or (Conversation(turns=self.turns),)


def load_scenario(path: Path) -> Scenario:
    """Raises DocumentError."""
    return read_document(path, Scenario)


def scenario_schema() -> dict[str, JsonValue]:
    """The JSON Schema of scenario files."""
    return Scenario.model_json_schema()
