"""The site where the functions of the service role work."""

from dataclasses import dataclass

from engine.chats.submissions import Submissions
from engine.registry.matching.matching import Matching
from engine.registry.registry import ToolRegistry
from engine.store.groups import GroupTable
from engine.store.routes import RouteTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable


@dataclass(frozen=True, slots=True)
class Tables:
    """What the functions read, and how they submit tasks."""

    matching: Matching
    registry: ToolRegistry
    groups: GroupTable
    routes: RouteTable
    tasks: TaskTable
    notes: TaskNoteTable
    submissions: Submissions


@dataclass(frozen=True, slots=True)
class Desk:
    """The site of one use. `key` is the same in all attempts."""

    chat_id: str
    key: str
    tables: Tables
