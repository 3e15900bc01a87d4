"""Real runtimes on a state directory of the test."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.runtimes import make_runtimes
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import BuiltinTool
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import MARK, Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import ToolRequest
from engine.runtimes.sandbox.socket_folder import SocketFolders
from tests.parts import sandboxing
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import Event
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sources import LocalSource, ToolSource
from toolagent.core.failures import StoreUnavailableError

PROJECTS = Path(__file__).parents[1] / "tool_projects"
BASE_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}


class Routes:
    """A RouteStore that records all routes, except while it is `away`."""

    def __init__(self) -> None:
        self.away = False
        self.saved: list[tuple[ToolRoute, str]] = []
        self.alerts: list[Event] = []

    async def alert(self, event: Event) -> None:
        self.alerts.append(event)

    async def save(self, route: ToolRoute, version: str) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailableError("Its disk is full.")
        self.saved.append((route, version))

    @property
    def states(self) -> list[RunState]:
        return [route.state for route, _ in self.saved]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(scope="session")
def environments_folder(environments: Path) -> Path:
    """Shared by tests that are not about environments: the empty one is built once."""
    return environments


@pytest.fixture
def guardian(state: Path) -> Generator[Guardian]:
    with Guardian(Owner.of_this_process(state)) as guardian:
        yield guardian


@pytest.fixture
def launcher(state: Path, guardian: Guardian) -> Launcher:
    return Launcher(Owner.of_this_process(state), guardian, BASE_ENVIRONMENT, shutil.which("setpriv"))


@pytest.fixture(scope="session")
def tools() -> Mapping[str, BuiltinTool]:
    return builtin_tools(BuiltinOptions())


@pytest_asyncio.fixture
async def http() -> AsyncGenerator[HttpExchange]:
    exchange = HttpExchange(max_result_bytes=64 * 1024)
    yield exchange
    await exchange.aclose()


@pytest.fixture
def parts(state: Path, launcher: Launcher, http: HttpExchange, environments_folder: Path, tools: Mapping[str, BuiltinTool]) -> RuntimeParts:
    return RuntimeParts(
        local=LocalSettings(data=PROJECTS, state=state, calls=state / "calls", start_timeout_s=20.0, stop_grace_s=2.0),
        launcher=launcher,
        sandboxing=sandboxing(state, launcher, environments_folder),
        http=http,
        secrets={"KEY": "s3cret-value"}.get,
        builtin_tools=tools,
    )


@pytest.fixture
def routes() -> Routes:
    return Routes()


@pytest_asyncio.fixture
async def supervisor(parts: RuntimeParts, routes: Routes, state: Path) -> AsyncGenerator[Supervisor]:
    """Requires that nothing is left when it is closed, whatever the test did."""
    supervisor = Supervisor(make_runtimes(parts), routes, "here", cancel_grace_s=1.0, alert=routes.alert)
    yield supervisor
    await supervisor.close()
    assert leftovers(state) == []


def local_source(project: str = "versatile", **more: int | str) -> LocalSource:
    return LocalSource.model_validate({"host_dir": project, "endpoint_path": "/run", **more})


def entry_of(*sources: ToolSource, tool_id: str = "versatile", version: str = "1.0.0", concurrency: int | None = None) -> ToolEntry:
    manifest = ToolManifest(tool_id=tool_id, name=tool_id, version=version, concurrency=concurrency)
    return ToolEntry(manifest=manifest, sources=sources or (local_source(),))


def request_of(timeout_s: float = 20.0, **params: JsonValue) -> ToolRequest:
    return ToolRequest(call_id="call-12345678", params=params, timeout_s=timeout_s, output_dir=Path("/tmp"))  # noqa: S108 - never written to


def home_of(state: Path, tool_id: str = "versatile") -> Path:
    """The HOME of a local tool, as this machine sees it."""
    return state / "tools" / tool_id / "home"


def inside(pid: int | None) -> set[int]:
    """The processes in the sandbox that this process set up, with the pids of this machine."""
    return {child.pid for child in psutil.Process(pid).children(recursive=True)}


def leftovers(state: Path, owner: Owner | None = None) -> list[str]:
    """What is left of the runs of a worker, by default this one: processes, control groups, socket folders."""
    mark = (owner or Owner.of_this_process(state)).mark
    processes = [f"{process.pid}" for process in psutil.process_iter() if _mark_of(process) == mark]
    sockets = [path for path in SocketFolders(state, None).root.iterdir() if path.is_dir()]
    # Unlike a glob, this minds nobody else's groups that go meanwhile.
    groups = [f"{folder}/{name}" for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith(f"{mark}.")]
    return [*processes, *groups, *map(str, sockets)]


def _mark_of(process: psutil.Process) -> str | None:
    with suppress(psutil.Error, OSError):
        return process.environ().get(MARK) if process.status() != psutil.STATUS_ZOMBIE else None
    return None


def silent(message: str) -> None: ...


async def nothing() -> None: ...


async def eventually(condition: Callable[[], bool], bound_s: float = 20.0) -> None:
    """Wait until the condition holds; fails after a time limit."""
    async with asyncio.timeout(bound_s):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.02)


def is_gone(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True
