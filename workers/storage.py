"""The database tables and the content store of one process, ready for use."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from engine.calls.cached_tools import CachedTools, CachedTroubles
from engine.calls.effects.ended import SettledCalls, UsualDurations
from engine.calls.memberships import Memberships
from engine.calls.placements import Placements
from engine.concierge.concierge import Concierge
from engine.registry.archives import ProjectArchives
from engine.registry.departures import departures_of
from engine.registry.matching.composites import Composites
from engine.registry.matching.matching import Matching
from engine.registry.registry import ToolRegistry
from engine.runtimes.auditing.audit import AuditLog
from engine.runtimes.builtin import ALIASES
from engine.store.call_messages import CallMessages
from engine.store.calls import CallTable
from engine.store.catalog_state import CatalogState
from engine.store.chats import ChatTable
from engine.store.claims import ClaimTable
from engine.store.database import Database, UnusableDatabaseError, migrate
from engine.store.doors import DoorTable
from engine.store.events import EventTable
from engine.store.evidence import EvidenceTable
from engine.store.faults import FaultTable
from engine.store.files import FileStore
from engine.store.groups import GroupTable
from engine.store.hosts import HostTable
from engine.store.lost_steps import LostStepTable
from engine.store.mcp_sessions import McpSessionTable
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.production_repairs import ProductionRepairs
from engine.store.quarantine import QuarantineTable
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from engine.store.tools import ToolTable
from engine.upkeep.hosts.residents import Residents
from engine.upkeep.removal.kept_files import Retention, sweeping_files
from toolagent.core.failures import StoreUnwritableError
from workers.failures import CannotRun
from workers.settings.kept import RetentionSettings
from workers.settings.whole import Settings
from workers.state.content import content_of
from workers.state.directory import StateDirectory


class Store:
    """What a process works with: its settings, its state directory, and all tables of one database."""

    def __init__(self, database: Database, settings: Settings, state: StateDirectory) -> None:
        self.settings, self.state, self.database = settings, state, database
        self.tools = ToolTable(database)
        self.routes = RouteTable(database, settings.host.host_lease_s)
        self.hosts = HostTable(database, settings.host.host_lease_s)
        self.groups = GroupTable(database)
        self.sessions = SessionTable(database)
        self.faults = FaultTable(database)
        self.calls = CallTable(database)
        self.call_messages = CallMessages(database)
        self.memberships = Memberships(self.groups, self.sessions, self.calls)
        self.claims = ClaimTable(database)
        self.doors = DoorTable(database, settings.host.host_lease_s)
        self.events = EventTable(database)
        self.mcp_sessions = McpSessionTable(database)
        self.content = content_of(database, settings.content, state)
        self.files = FileStore(database, self.content, state.content, settings.limits.max_file_bytes)
        self.archives = ProjectArchives(self.files)
        self.tasks = TaskTable(database)
        self.notes = TaskNoteTable(database)
        self.messages = MessageTable(database, self.files)
        self.outcomes = ToolOutcomeTable(database, self.files)
        self.turns = ModelTurnTable(database, self.messages)
        self.chats = ChatTable(database)
        self.evidence = EvidenceTable(database)
        self.placements = Placements(state.host or None, settings.calls.bucket_limits, self.hosts, self.routes)
        self.registry = ToolRegistry(self.tools, self.routes, ALIASES)
        self.composites = Composites(self.tools, self.groups)
        self.matching = Matching(self.tools, self.groups, CatalogState(database))
        self.concierge = Concierge(self.matching, self.tools, self.groups, self.tasks, has_model=settings.model.model is not None)
        self.residents = Residents(self.sessions, self.registry)
        self.cached_tools = CachedTools(self.registry, CatalogState(database))
        self.repairs = ProductionRepairs(database)
        self.quarantine = QuarantineTable(database)
        self.troubles = CachedTroubles(self.repairs, self.quarantine, self.cached_tools)
        self.durations = UsualDurations()
        self.settled = SettledCalls()
        self.lost_steps = LostStepTable(database)
        self.audit = AuditLog(state.root / "audit")


@asynccontextmanager
async def opened_store(settings: Settings, state: StateDirectory) -> AsyncGenerator[Store]:
    """The tables, migrated to this version of the code. Raises CannotRun."""
    named = settings.database.database_url
    url = named or state.database_url
    try:
        await asyncio.to_thread(settings.state.files_folder.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(state.content.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(migrate, url, state.migration_lock)
        database = Database(url, pool_size=settings.database.database_pool_size)
    except UnusableDatabaseError as error:
        if isinstance(error.__cause__, StoreUnwritableError):
            raise CannotRun(str(error)) from error
        place = "of TOOL_AGENT_DATABASE_URL" if named else f"{str(state.database)!r}"
        raise CannotRun(f"The database {place} cannot be used: {str(error).rstrip('.')}.") from error
    except OSError as error:
        place = error.filename or state.root
        raise CannotRun(
            f"{str(place)!r} cannot be written ({error.strerror}). Make room there, make it writable for the service's user, or set "
            "TOOL_AGENT_STATE_DIR (TOOL_AGENT_FILES_ROOT for the files of calls) to a folder that can."
        ) from error
    try:
        store = Store(database, settings, state)
        async with sweeping_files(database, store.content, state.content, _retention(settings.retention), departures_of(database).forget):
            try:
                yield store
            finally:
                store.audit.close()
    finally:
        await database.close()


def _retention(settings: RetentionSettings) -> Retention:
    return Retention(
        files=timedelta(hours=settings.file_retention_hours),
        calls=timedelta(hours=settings.call_retention_hours),
        tasks=timedelta(hours=settings.task_retention_hours),
        chats=timedelta(hours=settings.chat_retention_hours),
    )
