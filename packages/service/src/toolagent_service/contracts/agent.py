"""What a durable agent of any role remembers between its steps, and what its steps hand to each other through the workflow.

Messages are not in here: they lie in the store by conversation and position. Here are positions, counts and short notes, so that a history
stays small however long the conversation is. On the wire a conversation's id is `task_id`, and what an agent put down its `candidate`.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import AtLeastOne
from toolagent_service.contracts.blanks import Blank
from toolagent_service.contracts.model import Price, Usage

CODING = "coding"
"""The role that writes tools: that of payloads from before there were others."""

SERVICE = "service"
"""The role that talks to who wants a tool."""

ConversationId = Annotated[str, Field(alias="task_id")]
PutDown = Annotated[str | None, Field(alias="candidate", description="What names the thing that the agent was to make, once it is made.")]


class AgentEnd(StrEnum):
    """Why an agent stopped."""

    DONE = "registered"
    """It has put down what it was to make."""
    GAVE_UP = "gave_up"
    """It answered without doing anything, though it was asked to go on."""
    TURNS = "turns"
    WALL_TIME = "wall_time"
    TOKENS = "tokens"
    MONEY = "money"
    UNPRICED = "unpriced"
    """There is a limit in money, and no price is known for the model."""
    CIRCLES = "circles"
    REFUSED = "refused"
    """The model would not do it."""
    CONTEXT = "context"
    """The conversation is longer than the model can read."""
    MODEL = "model"
    """The model could not be asked."""


class AgentLimits(Contract):
    """What an agent may take. Times are in seconds, tokens are all that is read and written, cached or not."""

    turns: AtLeastOne = 100
    wall_s: PositiveFloat = 3_600.0
    tokens: AtLeastOne = 10_000_000
    cost_usd: NonNegativeFloat | None = None
    """None: no limit in money."""
    known_usd: NonNegativeFloat | None = None
    """The limit in money of a model without a price: for what it costs under the name that answers."""
    turn_tokens: AtLeastOne = 16_000
    """What one turn may write; a model's thinking counts too."""
    rounds: AtLeastOne = 3
    """How often something may be put down, where it is checked."""
    events: Annotated[int, Field(ge=5)] = 4_000
    """Of the history of one run, which another one goes on from: a tenth of what the server allows."""


class ToolUseNote(Contract):
    """One thing that the model wants done."""

    id: str
    """The model's name for this use."""
    name: str
    summary: str
    input_digest: str
    fault: Blank = None
    """Why it is not done, as the model is told; empty: it is done."""


class ModelTurnNote(Contract):
    """What the workflow learns of an answer; the answer itself lies in the store."""

    stop_reason: str
    model: str
    usage: Usage
    cost_usd: float | None = None
    """None: the price of this model is not known."""
    lost: Usage = Usage()
    """Of answers that broke off before this one came: paid for as well."""
    lost_usd: float = 0.0
    """What those cost, as far as the price is known."""
    uses: tuple[ToolUseNote, ...] = ()
    said: str = ""
    """The beginning of its text."""


class ToolRun(Contract):
    """A use of a tool that is to be done. Its input is in the message at `position`."""

    conversation_id: ConversationId
    position: int
    tool_use_id: str
    name: str
    summary: str
    remaining_s: float
    """What is left of the agent's time."""
    until: float | None = None
    """When that is over, in seconds since 1970: the same for each attempt."""
    role: str = CODING


class ToolNote(Contract):
    """What came of a use. What the model is shown lies in the store, unless it is here as `text`."""

    tool_use_id: str
    name: str
    summary: str = ""
    is_error: bool = False
    digest: str = ""
    """Of what came of it: two that are alike have the same."""
    size: NonNegativeInt = 0
    """Bytes of what the model is shown in the store."""
    text: str | None = None
    put_down: PutDown = None
    tool_ids: tuple[str, ...] = ()
    """Tools that it told the model of, where the role has to know."""
    task_ids: tuple[str, ...] = ()
    """Tasks that it began."""


class ShownOutcome(Contract):
    """An outcome that the model has not seen. `text` is None where the store has it."""

    tool_use_id: str
    text: str | None = None


class ModelAsk(Contract):
    """One turn that is to be asked for.

    The message to the model goes to `position` (the first one opens the conversation), the answer to the position after it. When there is
    an answer already, this was asked before, and is not paid again.

    An answer that breaks off is paid for, and asked for again within the step: `limits`, and what the agent has taken so far, tell whether
    enough is left for that.
    """

    conversation_id: ConversationId
    prompt: str
    turn: int
    position: int
    max_tokens: int
    outcomes: tuple[ShownOutcome, ...] = ()
    remarks: tuple[str, ...] = ()
    """What is said after the outcomes."""
    limits: AgentLimits | None = None
    tokens: int = 0
    cost_usd: float = 0.0
    role: str = CODING


class LoopState(Contract):
    """Where an agent is: the result of a query, what a run continues from, and what a test begins with."""

    started_s: float
    turns: int = 0
    position: int = 0
    """Of the last message; 0 before the first."""
    tokens: int = 0
    cost_usd: float = 0.0
    tool_calls: int = 0
    last_usage: Usage = Usage()
    """Of the last turn: the next one reads about as much."""
    unread: NonNegativeInt = 0
    """Bytes that are written down for the next turn to read, remarks not among them."""
    model: str = ""
    pending: tuple[ToolUseNote, ...] = ()
    """Wanted by the last turn and not done yet, in their order."""
    outcomes: tuple[ShownOutcome, ...] = ()
    remarks: tuple[str, ...] = ()
    """Hints, guidance and evidence that the model was not shown yet."""
    heard: tuple[str, ...] = ()
    """Ids of the latest guidance."""
    fingerprints: tuple[str, ...] = ()
    """Of the latest uses with their outcomes, to notice circles."""
    idle_turns: int = 0
    """Turns in a row that wanted nothing done."""
    round: int = 1
    put_down: PutDown = None
    end: AgentEnd | None = None
    reason: str = ""


class AgentRequest(Contract):
    """What an agent is started with. What it is told of its task is in the store, at position 0 of its conversation."""

    conversation_id: ConversationId
    prompt: str
    limits: AgentLimits = AgentLimits()
    price: Price | None = None
    """Of the model; None: not known."""
    opening: NonNegativeInt = 0
    """Bytes that the first turn reads: the task, the prompt, and what tools there are."""
    resume_from: LoopState | None = None
    role: str = CODING


class AgentResult(Contract):
    """How an agent ended. `reason` is for a person; `state` is what another round goes on from."""

    end: AgentEnd
    reason: str
    put_down: PutDown = None
    state: LoopState
