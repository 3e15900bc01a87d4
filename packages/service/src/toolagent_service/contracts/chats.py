"""Steps of a conversation, and the state that its workflow carries from run to run."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat

from toolagent.contracts.chats import ChatId, ChatMessage, ChatReply
from toolagent.contracts.contract import Contract
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.agent import AgentRequest, ModelAsk, ModelTurnNote

WRITING_DOWN_S = 2.0
"""Seconds that `answer_turn` has to store an answer. After that, the workflow does, which has more time."""

MOST_FOLLOWED = 200
"""The most tasks of one chat that are followed at once."""


class ChatLife(Contract):
    """The input of the workflow of a chat. The conversation itself is in the database."""

    chat_id: ChatId
    turn_count: NonNegativeInt = 0
    """The number of its last turn."""
    tools: tuple[str, ...] = ()
    """Tools that it mentioned, the latest last."""
    following: Annotated[tuple[str, ...], Field(max_length=MOST_FOLLOWED)] = ()
    """Running tasks that were started for it."""
    silence_s: PositiveFloat = 3_600.0
    """The workflow ends after this silence, if no task is followed."""
    runs: NonNegativeInt = 0
    """The number of earlier runs."""
    events: Annotated[int, Field(ge=10)] = 2_000
    """Events of one run, after which a new run continues. With all messages that may wait then, and an answer that takes all its turns, a
    history stays below 10,000 events."""


class ChatStep(Contract):
    """A step that concerns a whole chat."""

    chat_id: ChatId


class ChatRecalled(Contract):
    """The archive of a chat whose workflow begins. `following`: its running tasks."""

    turn_count: int
    following: tuple[str, ...]
    silence_s: float


class AnsweredTurn(Contract):
    """The message with this `number` is answered already: by rules, or because it is a repetition."""

    type: Literal["answered"] = "answered"
    number: int
    reply: ChatReply


class AskedTurn(Contract):
    """The message is stored, and a model must be asked."""

    type: Literal["asked"] = "asked"
    number: int
    request: AgentRequest


TurnBegun = Annotated[AnsweredTurn | AskedTurn, Field(discriminator="type")]


class TurnEnded(Contract):
    """The outcome of asking a model about the message with this `number`. `position` is that of its last answer."""

    said: ChatMessage
    number: int
    conversation_id: str = ""
    position: int
    tools: tuple[str, ...] = ()
    """Tools that its functions mentioned."""
    known_tools: tuple[str, ...] = ()
    """Tools that the chat mentioned before."""
    task_ids: tuple[str, ...] = ()
    error: str = ""


class AnswerAsk(Contract):
    """A turn of the model, and the end of the chat's turn if that is its answer."""

    ask: ModelAsk
    ended: TurnEnded


class AnswerNote(Contract):
    """The outcome of a turn. `reply`: it was the answer, and is stored."""

    note: ModelTurnNote
    reply: ChatReply | None = None


class TaskWatch(Contract):
    """A task that a chat started."""

    task_id: str


class TaskOutcome(Contract):
    """How a task ended."""

    task_id: str
    tool_id: str
    status: TaskState
    tool_ids: tuple[str, ...] = ()
    reason: str = ""


class Announcement(Contract):
    """An announcement of a chat by itself."""

    chat_id: ChatId
    outcome: TaskOutcome
