"""Where conversations of agents are kept: what was said, what came of uses, what turns cost, and the log that people read."""

from dataclasses import dataclass

from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable


@dataclass(frozen=True, slots=True)
class Transcript:
    """`tasks` show the progress of a conversation that is one's."""

    messages: MessageTable
    outcomes: ToolOutcomeTable
    turns: ModelTurnTable
    notes: TaskNoteTable
    tasks: TaskTable
