"""The front door with a real registry and file store on a temporary database, and a fake client that keeps the contract."""

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from mcp.server.request_state import AESGCMRequestStateCodec
from pydantic import JsonValue

from api.app import create_app
from api.ports import Dependencies, Limits, McpParts
from engine.calling.upstreams import Upstreams
from engine.calls.placements import Placements
from engine.concierge.concierge import Concierge
from engine.external.fetching import ALLOW_SETTING, TableFetch
from engine.external.reading import TableReader
from engine.external.tables import Tables
from engine.mcp_servers.logins import McpLogins
from engine.mcp_servers.looking import ServerLooks
from engine.mcp_servers.servers import RegisteredServers
from engine.network.addresses import resolve
from engine.registry.export import CatalogExport
from engine.registry.matching.matching import Matching
from engine.registry.registry import ToolRegistry
from engine.runtimes.auditing.audit import AuditLog
from engine.runtimes.http.destination import BeforeSending, Destinations
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.mcp.oauth.sending import asking
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import ToolRequest
from engine.store.call_messages import CallMessages
from engine.store.calls import CallTable
from engine.store.catalog_state import CatalogState
from engine.store.chats import ChatTable
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.doors import DoorTable
from engine.store.events import EventTable
from engine.store.evidence import EvidenceTable
from engine.store.external_tables import ExternalTableRows
from engine.store.faults import FaultTable
from engine.store.files import FileStore
from engine.store.groups import GroupTable
from engine.store.hosts import HostTable
from engine.store.mcp_logins import McpLoginRows
from engine.store.mcp_servers import McpServerRows
from engine.store.mcp_sessions import McpSessionTable
from engine.store.quarantine import QuarantineTable
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from engine.store.usage import UsageTable
from engine.upkeep.hosts.draining import Hosts
from engine.upkeep.hosts.residents import Residents
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.knowhub import KnowHubSync, SyncStatus
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import BuiltinSource, LocalSource, McpSource, RemoteSource
from toolagent.testing.fake_client import FakeToolAgentClient
from workers.state.secrets import SecretSource

LIMITS = Limits(max_params_bytes=10_000, max_file_bytes=200_000)
BASE_URL = "http://127.0.0.1:8001"
UNRESOLVED = {"nowhere.example": socket.EAI_NONAME, "later.example": socket.EAI_AGAIN}

COMPRESS = ToolManifest(
    tool_id="image_compress_api",
    name="图片压缩 API",
    category="cv",
    description="基于 PIL 的图片压缩",
    tags=("图片",),
    input_schema={
        "type": "object",
        "properties": {
            "image_path": {"type": "string", "format": "file-path", "description": "图片路径"},
            "quality": {"type": ["integer", "null"], "minimum": 1, "maximum": 100},
            "anything": True,
        },
        "required": ["image_path"],
    },
)
COMPRESS_SOURCE = LocalSource(host_dir="tools/local/image_compress_api", endpoint_path="/compress")
WEATHER = ToolManifest(tool_id="weather", name="Weather", description="Tells the weather")
WEATHER_SOURCE = RemoteSource(remote_url="http://127.0.0.1:1", remote_api_key="secret:WEATHER_KEY")
ECHO = ToolManifest(tool_id="echo", name="Echo", category="text")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snapshots", action="store_true", help="write tests/api/openapi.json anew: pytest tests/api --update-snapshots"
    )


@dataclass(frozen=True)
class House:
    """The parts that a test looks at. `http` is a client of the front door with these `dependencies`."""

    dependencies: Dependencies
    client: FakeToolAgentClient
    registry: ToolRegistry
    routes: RouteTable
    groups: GroupTable
    faults: FaultTable
    calls: CallTable
    files: FileStore
    tasks: TaskTable
    notes: TaskNoteTable
    evidence: EvidenceTable
    http: httpx.AsyncClient


@asynccontextmanager
async def browse(dependencies: Dependencies) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a front door; errors inside become responses, as on a real server."""
    transport = httpx.ASGITransport(create_app(dependencies), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE_URL) as http:
        yield http


@pytest.fixture
def server_patience_s() -> float:
    """The patience with an MCP server. A test of a silent server sets less; other tests need time on a busy machine."""
    return 30.0


@pytest_asyncio.fixture
async def house(database: Database, tmp_path: Path, server_patience_s: float) -> AsyncGenerator[House]:
    tools, routes, client = ToolTable(database), RouteTable(database), FakeToolAgentClient()
    registry, folder = ToolRegistry(tools, routes), tmp_path / "files"
    files = FileStore(database, FolderContent(folder), folder, LIMITS.max_file_bytes)
    matching = Matching(tools, GroupTable(database), CatalogState(database))
    dependencies = Dependencies(
        client=client,
        registry=registry,
        matching=matching,
        concierge=Concierge(matching, tools, GroupTable(database), TaskTable(database), has_model=True),
        routes=routes,
        groups=GroupTable(database),
        sessions=SessionTable(database),
        chats=ChatTable(database),
        catalog=CatalogExport(database),
        faults=FaultTable(database),
        calls=CallTable(database),
        call_messages=CallMessages(database),
        usage=UsageTable(database),
        events=EventTable(database),
        tasks=TaskTable(database),
        notes=TaskNoteTable(database),
        evidence=EvidenceTable(database),
        quarantine=QuarantineTable(database),
        files=files,
        hosts=Hosts(HostTable(database, 3600.0), routes, TaskTable(database), Residents(SessionTable(database), registry)),
        lanes=DoorTable(database, 3600.0),
        audit=AuditLog(tmp_path / "audit"),
        tables=external_tables(database, tmp_path),
        mcp_servers=registered_servers(database, tmp_path, patience_s=server_patience_s),
        upstreams=Upstreams(tools, CatalogState(database), Supervisor({}, routes, "")),
        knowhub=NoKnowHub(),
        placements=Placements("host-1", {"default": 1}, HostTable(database, 3600.0), routes),
        mcp=McpParts(McpSessionTable(database), CatalogState(database).number, "a key of tests, which is long enough", task_after_s=0.2),
        callback_refusal=nowhere_private,
        limits=LIMITS,
        checks={"database": database.check},
    )
    async with browse(dependencies) as http:
        tables = (GroupTable(database), FaultTable(database), CallTable(database))
        making = (TaskTable(database), TaskNoteTable(database), EvidenceTable(database))
        yield House(dependencies, client, registry, routes, *tables, files, *making, http)


@pytest_asyncio.fixture
async def stocked(house: House) -> House:
    """The catalog has three tools, one of each kind of source."""
    await house.registry.register(COMPRESS, (COMPRESS_SOURCE,))
    await house.registry.register(WEATHER, (WEATHER_SOURCE,))
    await house.registry.register(ECHO, (BuiltinSource(handler="echo"),))
    return house


class NoKnowHub:
    async def run(self, *, dry_run: bool = False) -> KnowHubSync:
        return KnowHubSync(status=SyncStatus.OFF, said=f"dry_run={dry_run}")


async def resolved(host: str, port: int) -> Sequence[str]:
    """Resolves as usual, except for two names without a name server: one does not exist, and for the other there is no answer."""
    if host in UNRESOLVED:
        raise socket.gaierror(UNRESOLVED[host], "it cannot be resolved")
    return await resolve(host, port)


def external_tables(database: Database, state: Path, every_s: float = 3600.0) -> Tables:
    """Tables at addresses of this machine are allowed."""
    reader = TableReader(TableFetch(Destinations(("127.0.0.1",), resolved, ALLOW_SETTING), max_bytes=256 * 1024, timeout_s=2))
    return Tables(ExternalTableRows(database), reader, SecretSource({}, state / "secrets"), every_s=every_s)


def _judge() -> BeforeSending:
    """A new judge each time, because its limit of look-ups belongs to an event loop."""
    return BeforeSending(Destinations(("127.0.0.1",), resolved, "TOOL_AGENT_MCP_ALLOW"))


def logins_at(database: Database, state: Path) -> McpLogins:
    """The logins as another process has them."""
    ask = asking(_judge())
    return McpLogins(McpLoginRows(database), AESGCMRequestStateCodec(["k" * 32]), ask, SecretSource({}, state / "secrets").resolve)


def registered_servers(
    database: Database, state: Path, every_s: float = 3600.0, patience_s: float = 30.0, own_port: int = 2
) -> RegisteredServers:
    """The servers as a front door without a host has them. Addresses of this machine are allowed."""
    keys, logins = SecretSource({}, state / "secrets"), logins_at(database, state)
    runtime = RemoteMcpRuntime(patience_s, 1.0, HttpExchange(), keys.resolve, _judge(), logins)
    looks = ServerLooks(runtime, None)
    return RegisteredServers(McpServerRows(database), looks, logins, keys, every_s=every_s, own_ports={own_port})


async def reached_by(logins: McpLogins, entry: ToolEntry | None) -> JsonValue:
    """The answer of the registered tool to a process with these logins."""
    assert entry is not None
    source = entry.sources[0]
    assert isinstance(source, McpSource)
    runtime = RemoteMcpRuntime(30.0, 1.0, HttpExchange(), lambda _: None, _judge(), logins)
    running = await runtime.start(entry.manifest, source, lambda _: None)
    try:
        return await runtime.call(running, source, ToolRequest("call-00000001", {}, 30.0, Path(), manifest=entry.manifest))
    finally:
        await runtime.stop(running)


async def nowhere_private(url: str) -> str | None:
    return "It leads to a private address." if "//10." in url else None


def with_doors(house: House, **changes: object) -> Dependencies:
    return replace(house.dependencies, **changes)
