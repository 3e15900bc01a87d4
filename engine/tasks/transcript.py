"""Where conversations of agents are kept: what was said, what came of uses, what turns cost, and the log that people read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.store.messages import MessageTable
from engine.store.model_turns import Also, ModelTurnTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from toolagent.contracts.chats import Chunk
from toolagent_service.contracts.agent import ModelTurnNote
from toolagent_service.contracts.model import ModelTurn


class AlsoWritten(Protocol):
    """What is written with a turn of a model, in one transaction."""

    def __call__(self, note: ModelTurnNote, turn: ModelTurn, unheard: Sequence[Chunk]) -> Also | None:
        """Of the turn, what the workflow is told of it, and what nobody heard of it yet. None: there is nothing to write."""
        ...

    def undone(self) -> None:
        """What it wrote may not be there."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """`tasks` show the progress of a conversation that is one's."""

    messages: MessageTable
    outcomes: ToolOutcomeTable
    turns: ModelTurnTable
    notes: TaskNoteTable
    tasks: TaskTable
