"""Steps of a conversation, and what its workflow carries from run to run."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat

from toolagent.contracts.chats import ChatId, ChatMessage, ChatReply
from toolagent.contracts.contract import Contract
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.agent import AgentRequest, ModelAsk, ModelTurnNote

WRITING_DOWN_S = 2.0
"""What `answer_turn` may take to write an answer down, after its turn, before that is left to the workflow, which has more."""

MOST_FOLLOWED = 200
"""Tasks of one chat that are followed at once."""


class ChatLife(Contract):
    """What the workflow of a chat starts with. The conversation itself lies in the database."""

    chat_id: ChatId
    turn_count: NonNegativeInt = 0
    """As of its last turn."""
    tools: tuple[str, ...] = ()
    """Tools that it spoke of, the latest last."""
    following: Annotated[tuple[str, ...], Field(max_length=MOST_FOLLOWED)] = ()
    """Tasks that were begun for it and have not ended."""
    silence_s: PositiveFloat = 3_600.0
    """It ends when nothing was said for so long and no task is followed."""
    runs: NonNegativeInt = 0
    """Earlier ones."""
    events: Annotated[int, Field(ge=10)] = 2_000
    """Of one run, after which it goes on as another one. With the messages that may wait then, and an answer that takes all its turns, a
    history stays below 10,000 events."""


class ChatStep(Contract):
    """A step about a chat as a whole."""

    chat_id: ChatId


class ChatRecalled(Contract):
    """What the archive says of a chat whose workflow begins. `following`: its tasks that have not ended."""

    turn_count: int
    following: tuple[str, ...]
    silence_s: float


class AnsweredTurn(Contract):
    """The message with this `number` has its answer: by rules, or since it was said before."""

    type: Literal["answered"] = "answered"
    number: int
    reply: ChatReply


class AskedTurn(Contract):
    """The message is written down, and a model is to be asked."""

    type: Literal["asked"] = "asked"
    number: int
    request: AgentRequest


TurnBegun = Annotated[AnsweredTurn | AskedTurn, Field(discriminator="type")]


class TurnEnded(Contract):
    """What came of asking a model about the message with this `number`. `position` is that of its last answer."""

    said: ChatMessage
    number: int
    conversation_id: str = ""
    position: int
    tools: tuple[str, ...] = ()
    """Those that its functions told of."""
    known_tools: tuple[str, ...] = ()
    """Those that the chat spoke of before."""
    task_ids: tuple[str, ...] = ()
    error: str = ""


class AnswerAsk(Contract):
    """A turn of the model, and how the turn of the chat ends where that is its answer."""

    ask: ModelAsk
    ended: TurnEnded


class AnswerNote(Contract):
    """What came of it. `reply`: it was the answer, and is written down."""

    note: ModelTurnNote
    reply: ChatReply | None = None


class TaskWatch(Contract):
    """A task that a chat has begun."""

    task_id: str


class TaskOutcome(Contract):
    """How it ended."""

    task_id: str
    tool_id: str
    status: TaskState
    tool_ids: tuple[str, ...] = ()
    reason: str = ""


class Announcement(Contract):
    """What a chat says by itself."""

    chat_id: ChatId
    outcome: TaskOutcome
