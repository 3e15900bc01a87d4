"""Parts around one call that several tests share."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from engine.calling.dialogues import Dialogues
from engine.calling.exchange import Exchange
from engine.calling.intake import Intake
from engine.calls.admission import Admissions
from engine.calls.call_folders import CallFolders
from engine.calls.checks.asked import CallLimits, Sources, Troubles
from engine.calls.effects.ended import Places
from engine.calls.file_parameters import FileParameters
from engine.calls.large_results import LargeResults
from engine.calls.lookup import ToolLookup
from engine.calls.memberships import Memberships
from engine.calls.placements import Placements
from engine.registry.matching.composites import Composites
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.running.supervisor import Supervisor
from engine.store.call_messages import CallMessages
from engine.store.calls import CallTable
from engine.store.claims import ClaimTable
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.doors import DoorTable
from engine.store.files import FileStore
from engine.store.groups import GroupTable
from engine.store.hosts import HostTable
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from toolagent.contracts.sources import RemoteSource
from toolagent_service.contracts.steps import CallPlan, Placement

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{"ok":true}'

CALL_ID = "call-00000001"
PLAN = CallPlan(
    call_id=CALL_ID,
    tool_id="t",
    version="1.0.0",
    params={},
    fingerprint="f",
    placement=Placement(queue="default"),
    fast=False,
    repeatable=False,
    timeout_s=10,
    start_timeout_s=5,
    queue_timeout_s=5,
)


@asynccontextmanager
async def serving(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncGenerator[RemoteSource]:
    """A server of raw HTTP, as the source of a tool."""
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield RemoteSource(remote_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


@asynccontextmanager
async def supervising(
    database: Database, make: Callable[[HttpExchange], RemoteRuntime] = lambda http: RemoteRuntime(http, lambda _: None)
) -> AsyncGenerator[Supervisor]:
    """The supervisor of remote tools on the host `h1`."""
    http = HttpExchange()
    supervisor = Supervisor({"remote": make(http)}, RouteTable(database), "h1", cancel_grace_s=0.2)
    yield supervisor
    await supervisor.close()
    await http.aclose()


def files_of(database: Database, folder: Path) -> FileStore:
    return FileStore(database, FolderContent(folder / "content"), folder / "content", 1000)


def exchange_of(database: Database, folder: Path, supervisor: Supervisor, intake: Intake, slot_wait_s: float = 2.0) -> Exchange:
    files = files_of(database, folder)
    results, folders = LargeResults(files, inline_bytes=50, max_bytes=100), CallFolders(folder / "calls")
    dialogues = Dialogues(CallMessages(database))
    return Exchange(supervisor, FileParameters(files, folder), results, folders, intake, dialogues, slot_wait_s=slot_wait_s)


def memberships_of(database: Database) -> Memberships:
    return Memberships(GroupTable(database), SessionTable(database), CallTable(database))


def admissions_of(
    database: Database, lookup: ToolLookup, parameters: FileParameters, limits: CallLimits, places: Places, *troubles: Troubles
) -> Admissions:
    """The admissions of the host `h1`, which has one slot."""
    placements = Placements("h1", {"default": 1}, HostTable(database, 3600.0), RouteTable(database))
    composites = Composites(ToolTable(database), GroupTable(database))
    doors = DoorTable(database, 3600.0)
    sources = Sources(lookup, places.calls, parameters, limits, ClaimTable(database), doors, composites, *troubles)
    return Admissions(sources, placements, places, memberships_of(database))
