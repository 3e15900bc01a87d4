"""The dependencies of the front door as protocols.

`workers` passes the implementations in.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Literal, Protocol

from fastapi import Depends
from pydantic import JsonValue
from starlette.requests import Request

from api.chat_ports import ChatArchive, Chats, Im, ImFunctions
from engine.registry.matching.texts import Filters
from toolagent.client.handles import BatchHandle, CallHandle
from toolagent.contracts.audit import AuditPage
from toolagent.contracts.batches import BatchEnd, ToolBatch
from toolagent.contracts.call_messages import CallMessage, Listener
from toolagent.contracts.callbacks import CallbackView
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.external_tables import ExternalTable, ExternalTables, RemovedTable
from toolagent.contracts.hosts import Host, HostDrain, HostListing
from toolagent.contracts.http import LoopPause
from toolagent.contracts.knowhub import KnowHubSync
from toolagent.contracts.lanes import Lane, LaneCounts
from toolagent.contracts.making import Evidence, Guidance, MakeRequest, MakeTask, TaskNote, TaskNoteKind
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.mcp_servers import McpServer, McpServers, McpServerSpec, RemovedMcpServer
from toolagent.contracts.quarantine import QuarantinedInput
from toolagent.contracts.records import CallRecord, CatalogFault, Event, StoredFile
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.sessions import OpenSession, SessionRun, SessionView
from toolagent.contracts.task_specs import TaskSpec
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.contracts.usage import CallListing, ToolUsage
from toolagent.contracts.versions import ToolVersions
from toolagent.validation.versions import NoSuchVersion
from toolagent_service.calls.lanes import Elsewhere
from toolagent_service.contracts.concierge import Language, Reply
from toolagent_service.contracts.mcp import McpSession
from toolagent_service.contracts.mcp_logins import LoginEnd

Check = Callable[[], Awaitable[None]]
"""Returns if a part of the service is ready; raises if it is not. Of the errors, only NotReadyError has a text that anybody may read."""


class NotReadyError(Exception):
    """A part of the service is not ready. Anybody may read the text."""


class LackingError(NotReadyError):
    """A part that only some tools need is missing; everything else is ready."""


class Registry(Protocol):
    """`engine.registry.registry.ToolRegistry` is one."""

    async def get(self, tool_id: str, version: str | None = None) -> ToolManifest | None: ...
    async def entry(self, tool_id: str, version: str | None = None) -> ToolEntry | None: ...
    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None: ...
    async def called(self, tool_id: str) -> ToolEntry | None: ...
    async def activate(self, tool_id: str, version: str) -> bool: ...
    async def roll_back(self, tool_id: str, leaving: str | None = None) -> str | None: ...
    async def deactivate(self, tool_id: str, version: str) -> bool: ...
    async def counts(self) -> tuple[int, int]: ...
    async def list_entries(self) -> tuple[ToolEntry, ...]: ...
    async def versions(self, tool_id: str) -> ToolVersions | None: ...
    async def list_ids(self) -> tuple[str, ...]: ...


class Search(Protocol):
    """`engine.registry.matching.matching.Matching` is one."""

    async def search(self, keyword: str, filters: Filters, limit: int | None = None) -> tuple[tuple[ToolEntry, ...], int]: ...


class Concierge(Protocol):
    """`engine.concierge.concierge.Concierge` is one."""

    async def answer(self, message: str, context: Mapping[str, JsonValue] | None = None) -> Reply: ...
    async def usual_time(self, task: TaskSpec, language: Language) -> str | None: ...


class Making(Protocol):
    """`toolagent.client.making.Making` is one."""

    async def start(self, request: MakeRequest) -> None: ...
    async def cancel(self, task_id: str) -> bool: ...
    async def guide(self, task_id: str, guidance: Guidance) -> bool: ...


class Calls(Protocol):
    """`ToolAgentClient` is one; see there for errors raised."""

    @property
    def making(self) -> Making: ...
    @property
    def sessions(self) -> "Sessions": ...
    @property
    def chats(self) -> Chats: ...
    async def run(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> ToolResult: ...
    async def start(self, call: ToolCall, call_id: str | None = None) -> CallHandle: ...
    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None: ...
    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool: ...
    async def callback(self, task_id: str) -> CallbackView | None: ...
    async def start_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchHandle: ...
    def batch(self, batch_id: str) -> BatchHandle: ...
    async def batch_end(self, batch_id: str) -> BatchEnd: ...
    async def control(self, control: ToolControl) -> ToolRoute: ...


class Settled(Protocol):
    """The calls whose records are committed by this process."""

    def expected(self, call_id: str) -> AbstractContextManager[asyncio.Future[ToolResult]]: ...


class LaneDoor(Protocol):
    """`engine.calling.door.Door` is one."""

    async def make(self, call: ToolCall, call_id: str, *, is_new: bool) -> ToolResult | Elsewhere: ...
    async def accept(self, call: ToolCall, call_id: str) -> str: ...
    async def tool_of_accepted(self, call_id: str) -> str | None: ...
    async def withdraw(self, call_id: str, claimed_at: str) -> None: ...
    async def cancel(self, call_id: str) -> bool: ...
    async def cancel_elsewhere(self, call_id: str) -> bool: ...


class AuditTrail(Protocol):
    async def read(self, tool_id: str | None = None, since: datetime | None = None, limit: int = 100) -> AuditPage: ...


class CallRecords(Protocol):
    async def get(self, call_id: str) -> CallRecord | None: ...


class CallMessages(Protocol):
    """`engine.store.call_messages.CallMessages` is one; see there for errors raised."""

    async def after(self, call_id: str, position: int = 0) -> tuple[CallMessage, ...]: ...
    async def open_questions(self, call_id: str) -> tuple[CallMessage, ...]: ...
    async def answer(self, call_id: str, position: int, answer: Mapping[str, JsonValue]) -> bool: ...


class Tasks(Protocol):
    """Tasks that make or repair tools."""

    async def create(self, task: MakeTask) -> MakeTask: ...
    async def get(self, task_id: str) -> MakeTask | None: ...
    async def listed(self, task_id: str) -> ListedTask | None: ...
    async def page(
        self, *, status: TaskState | None, spec_type: str | None, tool_id: str | None, limit: int, before: str | None
    ) -> tuple[ListedTask, ...]: ...
    async def say(self, task_id: str, key: str, text: str, payload: JsonValue) -> TaskNote: ...
    async def settle(self, task_id: str, status: Literal[TaskState.CANCELLED], reason: str = "") -> MakeTask: ...


class TaskNotes(Protocol):
    async def after(self, task_id: str, position: int = 0, *, limit: int = 500) -> tuple[TaskNote, ...]: ...
    async def count(self, task_id: str, kind: TaskNoteKind, *, but: str = "") -> int: ...
    async def tail(self, task_id: str, count: int) -> tuple[TaskNote, ...]: ...


class VersionEvidence(Protocol):
    async def of_tool(self, tool_id: str) -> dict[str, Evidence]: ...


class QuarantinedInputs(Protocol):
    async def of_tool(self, tool_id: str) -> tuple[QuarantinedInput, ...]: ...
    async def lift(self, tool_id: str, given: str | None = None) -> int: ...


class Events(Protocol):
    async def of_call(self, call_id: str) -> tuple[Event, ...]: ...
    async def alerts(self, within: timedelta, most: int) -> tuple[Event, ...]: ...


class Faults(Protocol):
    async def list_all(self) -> tuple[CatalogFault, ...]: ...


class Files(Protocol):
    async def put(self, chunks: AsyncIterator[bytes], name: str, media_type: str | None = None) -> StoredFile: ...
    async def get(self, file_id: str) -> StoredFile | None: ...
    async def has_content(self, file: StoredFile) -> bool: ...
    def read(self, file: StoredFile, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]: ...


class Catalog(Protocol):
    async def documents(self) -> dict[str, dict[str, JsonValue]]: ...


class Tables(Protocol):
    """`engine.external.tables.Tables` is one; see there for errors raised."""

    async def list_all(self) -> ExternalTables: ...
    async def register(self, source: str, url: str, key: str | None) -> ExternalTable: ...
    async def refresh(self, source: str) -> ExternalTable: ...
    async def remove(self, source: str) -> RemovedTable: ...


class ListedUpstream(Protocol):
    """An item as its server wrote it, and the name of the server."""

    @property
    def server(self) -> str: ...
    @property
    def item(self) -> dict[str, JsonValue]: ...


class Upstreams(Protocol):
    """`engine.calling.upstreams.Upstreams` is one; see there for errors raised."""

    async def listed(self, kind: Literal["prompts", "resources", "resourceTemplates"]) -> Sequence[ListedUpstream]: ...
    async def ask(
        self, server: str, method: str, params: Mapping[str, JsonValue], listens: Listener | None = None
    ) -> dict[str, JsonValue]: ...
    def heard_by(self, listener: Callable[[str, Mapping[str, JsonValue]], None]) -> AbstractContextManager[None]: ...


class RegisteredMcpServers(Protocol):
    """`engine.mcp_servers.servers.RegisteredServers` is one; see there for errors raised."""

    async def list_all(self) -> McpServers: ...
    async def get(self, name: str) -> McpServer: ...
    async def register(self, name: str, spec: McpServerSpec, redirect_uri: str) -> McpServer: ...
    async def refresh(self, name: str) -> McpServer: ...
    async def log_in(self, name: str, redirect_uri: str) -> McpServer: ...
    async def finish_login(self, state: str, code: str, iss: str | None, error: str) -> LoginEnd: ...
    async def remove(self, name: str) -> RemovedMcpServer: ...


class KnowHub(Protocol):
    """`toolagent.client.knowhub.KnowHubSyncs` is one."""

    async def run(self, *, dry_run: bool = False) -> KnowHubSync: ...


class Groups(Protocol):
    async def list_all(self) -> tuple[ToolGroup, ...]: ...
    async def get(self, group_id: str) -> ToolGroup | None: ...


class Sessions(Protocol):
    """`toolagent.client.sessions.Sessions` is one."""

    async def open(
        self, request: OpenSession, *, again: bool = False, is_gone: Callable[[], Awaitable[bool]] | None = None
    ) -> SessionView: ...
    async def run(self, group_id: str, session_id: str, run: SessionRun) -> ToolResult: ...
    async def stop(self, group_id: str, session_id: str) -> SessionView: ...
    async def stop_left(self, group_id: str, session_id: str, life: dict[str, JsonValue]) -> SessionView: ...
    async def renew(self, group_id: str, session_id: str) -> SessionView: ...
    async def view(self, group_id: str, session_id: str) -> SessionView | None: ...


class SessionRows(Protocol):
    async def get(self, session_id: str) -> SessionView | None: ...
    async def whole(self, session_id: str) -> tuple[OpenSession, SessionView] | None: ...
    async def of_group(self, group_id: str, *, living: bool = False) -> tuple[SessionView, ...]: ...
    async def living_by_state(self) -> dict[str, int]: ...
    async def stopping(self) -> tuple[SessionView, ...]: ...


class Hosts(Protocol):
    """`engine.upkeep.hosts.draining.Hosts` is one; None where there is no such host."""

    async def list_all(self) -> tuple[Host, ...]: ...
    async def listing(self) -> HostListing: ...
    async def drain(self, host: str) -> HostDrain | None: ...
    async def undrain(self, host: str) -> HostDrain | None: ...
    async def progress(self, host: str) -> HostDrain | None: ...


class Lanes(Protocol):
    async def alive(self) -> tuple[Lane, ...]: ...


class HostChoice(Protocol):
    async def host_for(self, entry: ToolEntry) -> str | None: ...


class Usage(Protocol):
    async def of_tool(self, tool_id: str, since: datetime | None = None) -> ToolUsage: ...
    async def of_calls(self, conversation_id: str | None, tool_id: str | None, most: int) -> CallListing: ...


class Routes(Protocol):
    async def list_all(self) -> tuple[ToolRoute, ...]: ...
    async def get(self, tool_id: str) -> ToolRoute | None: ...


class McpSessions(Protocol):
    """`engine.store.mcp_sessions.McpSessionTable` is one."""

    async def open(self, session: McpSession) -> None: ...
    async def get(self, session_id: str) -> McpSession | None: ...
    async def change(self, session_id: str, edit: Callable[[McpSession], McpSession]) -> McpSession | None: ...
    async def touch(self, session_id: str) -> None: ...
    async def close(self, session_id: str) -> None: ...
    async def begin_request(self, session_id: str, request_id: str, call_id: str) -> None: ...
    async def end_request(self, session_id: str, request_id: str) -> None: ...
    async def call_of(self, session_id: str, request_id: str) -> str | None: ...
    async def is_subscribed(self, uri: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class McpParts:
    """What only the MCP server needs. `catalog_number` grows with each change of tools. `state_key` seals the state that clients keep; all
    front doors have the same. After `task_after_s` a call becomes a task, if its client supports tasks."""

    sessions: McpSessions
    catalog_number: Callable[[], Awaitable[int]]
    state_key: str
    task_after_s: float = 10.0
    own_port: int | None = None
    """The port of the MCP server; None: it shares that of the API."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, and how many values a body may hold."""

    max_params_bytes: int = 1_048_576
    max_values: int = 110_000
    max_file_bytes: int = 64 * 1_048_576
    max_message_bytes: int = 65_536


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Everything behind the front door.

    With `has_model`, a conversation with the model answers what the rules of the concierge do not decide. `placements` chooses the host of
    a tool that does not run yet. `callback_refusal` says why callbacks may not go to a URL. `longest_pause` is that of the event loop.
    `lane_figures` are those of this door's lane, if it is used. `public_url` is the URL for browsers; None: the one of the request."""

    client: Calls
    registry: Registry
    matching: Search
    concierge: Concierge
    routes: Routes
    groups: Groups
    sessions: SessionRows
    chats: ChatArchive
    catalog: Catalog
    faults: Faults
    calls: CallRecords
    call_messages: CallMessages
    usage: Usage
    events: Events
    tasks: Tasks
    notes: TaskNotes
    evidence: VersionEvidence
    quarantine: QuarantinedInputs
    files: Files
    hosts: Hosts
    lanes: Lanes
    placements: HostChoice
    tables: Tables
    mcp_servers: RegisteredMcpServers
    upstreams: Upstreams
    knowhub: KnowHub
    audit: AuditTrail
    mcp: McpParts
    callback_refusal: Callable[[str], Awaitable[str | None]]
    has_model: bool = False
    limits: Limits = field(default_factory=Limits)
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])
    longest_pause: Callable[[], LoopPause | None] = lambda: None
    lane_figures: Callable[[], LaneCounts | None] = lambda: None
    im: Im | None = None
    im_functions: ImFunctions | None = None
    public_url: str | None = None
    api_key: str | None = None
    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")


def dependencies_of(request: Request) -> Dependencies:
    dependencies: Dependencies = request.app.state.dependencies
    return dependencies


async def _injected(request: Request) -> Dependencies:
    # Async, because FastAPI runs other dependencies in a thread, which costs more than this.
    return dependencies_of(request)


Injected = Annotated[Dependencies, Depends(_injected)]
"""The dependencies, as a parameter of a route."""
