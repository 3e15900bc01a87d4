"""The state of a durable agent of any role, and the inputs and outputs of its steps.

Messages are not here but in the store, by conversation and position. Here are positions, counts and short notes, so that a history
stays small. On the wire, the id of a conversation is `task_id`, and the product of an agent is `candidate`.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import AtLeastOne
from toolagent_service.contracts.blanks import Blank
from toolagent_service.contracts.model import Price, Usage

CODING = "coding"
"""The role that writes tools, and the default in payloads from before there were other roles."""

SERVICE = "service"
"""The role that talks with users."""

ConversationId = Annotated[str, Field(alias="task_id")]
Product = Annotated[str | None, Field(alias="candidate", description="Names the product of the agent, once there is one.")]


class AgentEnd(StrEnum):
    """Why an agent stopped."""

    DONE = "registered"
    """It has delivered its product."""
    GAVE_UP = "gave_up"
    """It used no tool, although it was asked to go on."""
    TURNS = "turns"
    WALL_TIME = "wall_time"
    TOKENS = "tokens"
    MONEY = "money"
    UNPRICED = "unpriced"
    """There is a limit in money, but no known price of the model."""
    CIRCLES = "circles"
    REFUSED = "refused"
    """The model refused."""
    CONTEXT = "context"
    """The conversation exceeds the context of the model."""
    MODEL = "model"
    """The model could not be reached."""


class AgentLimits(Contract):
    """Limits of an agent. Times are in seconds; tokens are all that it reads and writes, cached or not."""

    turns: AtLeastOne = 100
    wall_s: PositiveFloat = 3_600.0
    tokens: AtLeastOne = 10_000_000
    cost_usd: NonNegativeFloat | None = None
    """None: no limit in money."""
    known_usd: NonNegativeFloat | None = None
    """The limit in money for a model without a price, if it answers under a name that has one."""
    turn_tokens: AtLeastOne = 16_000
    """Tokens that one turn may write, thinking included."""
    rounds: AtLeastOne = 3
    """How often the product may be delivered, if it is checked."""
    events: Annotated[int, Field(ge=5)] = 4_000
    """Events in the history of one run, after which a new run continues: a tenth of what the server allows."""


class ToolUseNote(Contract):
    """One use of a tool that the model asks for."""

    id: str
    """The model's name for this use."""
    name: str
    summary: str
    input_digest: str
    fault: Blank = None
    """Why it is not run, in words for the model; empty: it is run."""


class ModelTurnNote(Contract):
    """A summary of an answer for the workflow. The answer itself is in the store."""

    stop_reason: str
    model: str
    usage: Usage
    cost_usd: float | None = None
    """None: the price of the model is unknown."""
    lost: Usage = Usage()
    """Usage of earlier answers that broke off, which are paid for too."""
    lost_usd: float = 0.0
    """Their cost, as far as the price is known."""
    uses: tuple[ToolUseNote, ...] = ()
    said: str = ""
    """The beginning of its text."""


class ToolRun(Contract):
    """A use of a tool to run. Its input is in the message at `position`."""

    conversation_id: ConversationId
    position: int
    tool_use_id: str
    name: str
    summary: str
    remaining_s: float
    """The rest of the agent's time."""
    until: float | None = None
    """The end of that time, in seconds since 1970: the same for each attempt."""
    role: str = CODING


class ToolNote(Contract):
    """The outcome of a use. The text for the model is in the store, unless `text` has it."""

    tool_use_id: str
    name: str
    summary: str = ""
    is_error: bool = False
    digest: str = ""
    """The hash of the outcome. Equal outcomes have the same."""
    size: NonNegativeInt = 0
    """Bytes of the text in the store."""
    text: str | None = None
    product: Product = None
    tool_ids: tuple[str, ...] = ()
    """Tools that it mentioned to the model, if the role needs them."""
    task_ids: tuple[str, ...] = ()
    """Tasks that it started."""


class ShownOutcome(Contract):
    """An outcome that the model has not seen. `text` is None if it is in the store."""

    tool_use_id: str
    text: str | None = None


class ModelAsk(Contract):
    """A request for one turn.

    The message to the model is stored at `position` (the first opens the conversation), the answer at the next. If there is
    an answer already, the turn is not asked and paid again.

    An answer that breaks off is paid for, and repeated within the step. `limits` and the usage so far decide whether
    enough is left.
    """

    conversation_id: ConversationId
    prompt: str
    turn: int
    position: int
    max_tokens: int
    outcomes: tuple[ShownOutcome, ...] = ()
    remarks: tuple[str, ...] = ()
    """Texts after the outcomes."""
    limits: AgentLimits | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    role: str = CODING


class LoopState(Contract):
    """The state of an agent: the result of a query, the input of a continued run, and the start of a test."""

    started_s: float
    turns: int = 0
    position: int = 0
    """Position of the last message; 0 before the first."""
    tokens: int = 0
    cost_usd: float = 0.0
    tool_calls: int = 0
    last_usage: Usage = Usage()
    """Usage of the last turn. The next one reads about as much."""
    unread: NonNegativeInt = 0
    """Bytes in the store that the next turn reads, without remarks."""
    model: str = ""
    pending: tuple[ToolUseNote, ...] = ()
    """Uses of the last turn that are not run yet, in order."""
    outcomes: tuple[ShownOutcome, ...] = ()
    remarks: tuple[str, ...] = ()
    """Hints, guidance and evidence that the model has not seen."""
    heard: tuple[str, ...] = ()
    """Ids of the latest guidance."""
    fingerprints: tuple[str, ...] = ()
    """Fingerprints of the latest uses with their outcomes, to detect circles."""
    idle_turns: int = 0
    """Turns in a row without a use of a tool."""
    round: int = 1
    product: Product = None
    end: AgentEnd | None = None
    reason: str = ""


class AgentRequest(Contract):
    """The input of an agent. The text about its task is in the store, at position 0 of its conversation."""

    conversation_id: ConversationId
    prompt: str
    limits: AgentLimits = AgentLimits()
    price: Price | None = None
    """The price of the model; None: unknown."""
    opening: NonNegativeInt = 0
    """Bytes that the first turn reads: the task, the prompt and the list of tools."""
    resume_from: LoopState | None = None
    role: str = CODING


class AgentResult(Contract):
    """How an agent ended. `reason` is for a person; another round continues from `state`."""

    end: AgentEnd
    reason: str
    product: Product = None
    state: LoopState
