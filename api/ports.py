"""What the front door needs of the rest of the house; `workers` puts the real things in."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from engine.registry.registry import ToolRegistry
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.manifest import ToolGroup
from toolagent.contracts.records import CallRecord, CatalogFault, Event, StoredFile
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.tasks import TaskView

__all__ = ["Calls", "Check", "Doors", "Limits", "NotReadyError"]

Check = Callable[[], Awaitable[None]]
"""Returns when a part of the service is ready; raises when it is not. Only the text of a NotReadyError is shown to everybody."""


class NotReadyError(Exception):
    """A part of the service is not ready; the text says why, in words that anybody may read."""


class Calls(Protocol):
    """`ToolAgentClient` is one; its docstrings say what is promised and raised."""

    async def run(self, call: ToolCall, call_id: str | None = None) -> ToolResult: ...
    async def start(self, call: ToolCall, call_id: str | None = None) -> str: ...
    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None: ...
    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool: ...
    async def control(self, control: ToolControl) -> ToolRoute: ...


class CallRecords(Protocol):
    async def get(self, call_id: str) -> CallRecord | None: ...


class Events(Protocol):
    async def of_call(self, call_id: str) -> tuple[Event, ...]: ...


class Faults(Protocol):
    async def list_all(self) -> tuple[CatalogFault, ...]: ...


class Files(Protocol):
    async def put(self, chunks: AsyncIterator[bytes], name: str, media_type: str | None = None) -> StoredFile: ...
    async def get(self, file_id: str) -> StoredFile | None: ...
    def path(self, file: StoredFile) -> Path: ...


class Groups(Protocol):
    async def list_all(self) -> tuple[ToolGroup, ...]: ...


class Routes(Protocol):
    async def list_all(self) -> tuple[ToolRoute, ...]: ...
    async def get(self, tool_id: str) -> ToolRoute | None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes."""

    max_params_bytes: int = 1_048_576
    max_file_bytes: int = 64 * 1_048_576


@dataclass(frozen=True, slots=True)
class Doors:
    """Everything behind the front door. `host` is where tools are started that run nowhere yet."""

    client: Calls
    registry: ToolRegistry
    routes: Routes
    groups: Groups
    faults: Faults
    calls: CallRecords
    events: Events
    files: Files
    host: str
    limits: Limits = field(default_factory=Limits)
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])
    api_key: str | None = None
    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
