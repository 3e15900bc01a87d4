"""What the functions of the service role work with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.chats.submissions import Submissions
from engine.registry.matching.texts import Filters
from engine.registry.registry import ToolRegistry
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import MakeTask, TaskNote
from toolagent.contracts.manifest import ToolGroup
from toolagent.contracts.routes import ToolRoute


class Search(Protocol):
    """`engine.registry.matching.matching.Matching` is one."""

    async def search(self, keyword: str, filters: Filters, limit: int | None = None) -> tuple[tuple[ToolEntry, ...], int]: ...


class Groups(Protocol):
    async def list_all(self) -> tuple[ToolGroup, ...]: ...


class Routes(Protocol):
    async def get(self, tool_id: str) -> ToolRoute | None: ...


class Tasks(Protocol):
    async def get(self, task_id: str) -> MakeTask | None: ...


class Notes(Protocol):
    async def tail(self, task_id: str, count: int) -> Sequence[TaskNote]: ...


@dataclass(frozen=True, slots=True)
class Tables:
    """What they read, and how tasks are begun."""

    matching: Search
    registry: ToolRegistry
    groups: Groups
    routes: Routes
    tasks: Tasks
    notes: Notes
    submissions: Submissions


@dataclass(frozen=True, slots=True)
class Desk:
    """Of one use. `key` names it in all attempts."""

    chat_id: str
    key: str
    tables: Tables
