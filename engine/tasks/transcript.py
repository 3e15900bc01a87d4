"""The tables of conversations of agents: messages, outcomes of uses, costs of turns, and the log."""

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
    """Writes more in the transaction that records a turn of a model."""

    def __call__(self, note: ModelTurnNote, turn: ModelTurn, unheard: Sequence[Chunk]) -> Also | None:
        """The write for this turn, given its note for the workflow and the chunks that no listener has seen. None: nothing to write."""
        ...

    def undone(self) -> None:
        """The write may not have been committed."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """`tasks` show the progress of conversations that belong to a task."""

    messages: MessageTable
    outcomes: ToolOutcomeTable
    turns: ModelTurnTable
    notes: TaskNoteTable
    tasks: TaskTable
