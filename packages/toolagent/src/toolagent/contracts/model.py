"""What is said to a model and what it says: the parts of the Messages API that we use, and what a turn cost."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolagent.contracts.contract import Contract

__all__ = ["Block", "Message", "ModelTurn", "Text", "ToolOffer", "ToolOutcome", "ToolUse", "Usage"]


class Text(Contract):
    type: Literal["text"] = "text"
    text: str


class ToolUse(Contract):
    """The model wants an agent tool to be used. `id` is the model's name for this use."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, JsonValue] = {}


class ToolOutcome(Contract):
    """What came of it, as the model is shown it."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: str
    is_error: bool = False


Block = Annotated[Text | ToolUse | ToolOutcome, Field(discriminator="type")]


class Message(Contract):
    role: Literal["user", "assistant"]
    content: tuple[Block, ...]


class ToolOffer(Contract):
    """An agent tool, as the model is told of it."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


class Usage(Contract):
    """Tokens. Those read from the cache and written to it are not among the `input_tokens`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


class ModelTurn(Contract):
    """One answer of the model. `cost_usd` is None when the price of this model is not known."""

    content: tuple[Block, ...]
    stop_reason: str
    model: str
    usage: Usage
    cost_usd: float | None = None
