"""Real containers on a real engine; each test has its own state directory, and leaves nothing behind."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import Document, Engine, EngineRefused
from engine.runtimes.docker_engine.labels import STATE
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.process.ownership import Owner
from engine.runtimes.runtime import ToolRequest
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.identities import Identities
from engine.runtimes.sandbox.identity import PAYLOAD
from tests.docker.engines import ready_engine
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.containers import ContainerInfo

PROJECTS = Path(__file__).parents[1] / "tool_projects"
IDENTITY = PAYLOAD if os.geteuid() == 0 else None
SECRETS = {"SERVICE_KEY": "hunter2 & more\nlines"}
TOOL = ToolManifest(tool_id="versatile", name="Versatile")


class Notes:
    """The audit, in memory."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []

    def note(self, entry: AuditEntry) -> None:
        self.entries.append(entry)


class Book:
    """Keeps its notes; fails `away` times first."""

    def __init__(self) -> None:
        self.noted: list[ContainerInfo] = []
        self.away = 0

    async def note(self, container: ContainerInfo) -> None:
        await asyncio.sleep(0)
        if self.away:
            self.away -= 1
            raise StoreUnavailableError("The database is away.")
        self.noted.append(container)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture(scope="session", autouse=True)
def an_engine() -> None:
    ready_engine()


@pytest.fixture
def settings(tmp_path: Path) -> DockerSettings:
    state = tmp_path / "state"
    state.mkdir()  # what belongs to one that is not there is swept
    owner = Owner.of_this_process(state)
    return DockerSettings(PROJECTS, state, owner, "here", start_timeout_s=30.0, stop_grace_s=2.0, identity=IDENTITY)


@pytest_asyncio.fixture
async def engine(settings: DockerSettings) -> AsyncGenerator[Engine]:
    engine = Engine()
    yield engine
    wanted = {"label": f"{STATE}={settings.owner.state}"}
    for left in await engine.ask(lambda api: api.containers(all=True, filters=wanted)):
        await engine.ask(lambda api, left=left: api.remove_container(left["Id"], v=True, force=True))
    for image in await engine.ask(lambda api: api.images(filters=wanted)):
        with contextlib.suppress(EngineRefused):  # with its last descendant it is gone already
            await engine.ask(lambda api, image=image: api.remove_image(image["Id"], force=True))
    engine.close()


@pytest_asyncio.fixture
async def http() -> AsyncGenerator[HttpExchange]:
    exchange = HttpExchange()
    yield exchange
    await exchange.aclose()


@pytest_asyncio.fixture
async def make_runtime(
    settings: DockerSettings, engine: Engine, http: HttpExchange, book: Book
) -> AsyncGenerator[Callable[..., DockerRuntime]]:
    """Makes runtimes with changed settings; several in a test are like workers one after the other."""
    made: list[DockerRuntime] = []

    def make(users: Identities | None = None, engine: Engine = engine, **changed: object) -> DockerRuntime:
        given = replace(settings, **changed)  # pyright: ignore[reportArgumentType] - as the fields are named
        egress = Egress(given.state, identity=given.identity)
        runtime = DockerRuntime(DockerParts(given, engine, egress, book=book, secrets=SECRETS.get, users=users), http)
        made.append(runtime)
        return runtime

    yield make
    for runtime in made:
        await runtime.close()


@pytest.fixture
def runtime(make_runtime: Callable[..., DockerRuntime]) -> DockerRuntime:
    return make_runtime()


def silent(message: str) -> None: ...


def request_of(timeout_s: float = 20.0, **params: JsonValue) -> ToolRequest:
    return ToolRequest(call_id="call-12345678", params=params, timeout_s=timeout_s, output_dir=Path("/tmp"))  # noqa: S108 - never written to


async def eventually(condition: Callable[[], bool], bound_s: float = 20.0) -> None:
    """Wait until the condition holds; fails after a time limit."""
    async with asyncio.timeout(bound_s):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.02)


async def containers_of(engine: Engine, settings: DockerSettings) -> list[Document]:
    """The containers of the test's state directory, as the engine lists them."""
    filters = {"label": f"{STATE}={settings.owner.state}"}
    return await engine.ask(lambda api: api.containers(all=True, filters=filters))
