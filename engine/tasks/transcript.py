"""Where conversations of agents are kept: what was said, what came of uses, what turns cost, and the log that people read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.store.messages import MessageTable
from engine.store.model_turns import Also, ModelTurnTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from toolagent.contracts.chats import Chunk
from toolagent_service.contracts.agent import ModelTurnNote
from toolagent_service.contracts.model import ModelTurn

AlsoWritten = Callable[[ModelTurnNote, ModelTurn, Sequence[Chunk]], Also | None]
"""What is written with a turn, in one transaction: of the turn, what the workflow is told of it, and what nobody heard of it yet."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """`tasks` show the progress of a conversation that is one's."""

    messages: MessageTable
    outcomes: ToolOutcomeTable
    turns: ModelTurnTable
    notes: TaskNoteTable
    tasks: TaskTable
