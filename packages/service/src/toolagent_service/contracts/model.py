"""Requests to models and their answers: the parts of the Messages API that we use, with costs."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, NonNegativeFloat

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import AtLeastOne


class Text(Contract):
    type: Literal["text"] = "text"
    text: str


class ToolUse(Contract):
    """The model uses an agent tool. `id` is the model's name for this use."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, JsonValue] = {}


class ToolOutcome(Contract):
    """The outcome of a use, as the model sees it."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: str
    is_error: bool = False


class Carried(Contract):
    """A part of an answer that we do not read (a model's thinking). It is sent back unchanged."""

    type: Literal["carried"] = "carried"
    block: dict[str, JsonValue]


Block = Annotated[Text | ToolUse | ToolOutcome | Carried, Field(discriminator="type")]


class Message(Contract):
    role: Literal["user", "assistant"]
    content: tuple[Block, ...]


class ToolOffer(Contract):
    """An agent tool, as the model sees it."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


class ModelRequest(Contract):
    """A request to a model. `max_tokens` limits its answer."""

    system: str
    messages: Annotated[tuple[Message, ...], Field(min_length=1)]
    tools: tuple[ToolOffer, ...] = ()
    max_tokens: AtLeastOne


class Usage(Contract):
    """Numbers of tokens. `input_tokens` excludes those read from the cache and written to it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def read(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total(self) -> int:
        return self.read + self.output_tokens


class ModelTurn(Contract):
    """One answer of the model. `cost_usd` is None if the price of the model is unknown."""

    content: tuple[Block, ...]
    stop_reason: str
    model: str
    usage: Usage
    cost_usd: float | None = None


class Rates(Contract):
    """USD for a million tokens."""

    input: NonNegativeFloat
    output: NonNegativeFloat
    cache_read: NonNegativeFloat
    cache_write: NonNegativeFloat


class LongPromptRates(Rates):
    """Rates for a whole turn that reads more than `over_tokens`, cached or not."""

    over_tokens: AtLeastOne


class Price(Rates):
    """The price of a model."""

    long_prompt: LongPromptRates | None = None
