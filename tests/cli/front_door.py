"""The real front door on a real store, for tasks that make tools.

The test does the work of the tasks.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TypeVar, cast

import uvicorn

from api.app import create_app
from api.ports import Dependencies, Limits
from engine.registry.registry import ToolRegistry
from engine.store.chats import ChatTable
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from tests.parts import tool_registry
from toolagent.contracts.making import TaskNote
from toolagent.testing.fake_client import FakeToolAgentClient

BOUND_S = 20.0

T = TypeVar("T")


class _WatchedLog(TaskNoteTable):
    """Knows when a reader has begun."""

    def __init__(self, database: Database, is_read: threading.Event) -> None:
        super().__init__(database)
        self._is_read = is_read

    async def after(self, task_id: str, position: int = 0, *, limit: int = 500) -> tuple[TaskNote, ...]:
        self._is_read.set()
        return await super().after(task_id, position, limit=limit)


@dataclass
class FrontDoor:
    """`restart` breaks all connections and keeps the port. `followed` is set when a client follows a task and has its state."""

    url: str
    client: FakeToolAgentClient
    database_url: str
    restart: Callable[[], None]
    followed: threading.Event

    def do(self, work: Callable[[TaskTable, TaskNoteTable], Awaitable[T]]) -> T:
        """The work of a worker, on its own connection."""
        return self.database(lambda database: work(TaskTable(database), TaskNoteTable(database)))

    def database(self, work: Callable[[Database], Awaitable[T]]) -> T:
        async def run() -> T:
            database = Database(self.database_url)
            try:
                return await work(database)
            finally:
                await database.close()

        return asyncio.run(run())

    def registry(self, work: Callable[[ToolRegistry], Awaitable[T]]) -> T:
        return self.database(lambda database: work(tool_registry(database)))


class _Server:
    """Runs in its own thread, with its own event loop and database connection."""

    def __init__(self, client: FakeToolAgentClient, database_url: str, port: int, followed: threading.Event) -> None:
        listener = socket.create_server(("127.0.0.1", port))
        self.port: int = listener.getsockname()[1]
        self._database = Database(database_url)
        app = create_app(_doors(client, self._database, followed))
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(listener),))
        self._thread.start()

    def end(self) -> None:
        self._server.should_exit = True
        self._thread.join(BOUND_S)

    async def _serve(self, listener: socket.socket) -> None:
        await self._server.serve([listener])
        await self._database.close()


def _doors(client: FakeToolAgentClient, database: Database, followed: threading.Event) -> Dependencies:
    doors = SimpleNamespace(
        limits=Limits(),
        api_key=None,
        allowed_hosts=("127.0.0.1",),
        client=client,
        registry=tool_registry(database),
        tasks=TaskTable(database),
        notes=_WatchedLog(database, followed),
        evidence=EvidenceTable(database),
        chats=ChatTable(database),
    )
    return cast("Dependencies", doors)


@contextmanager
def front_door(database_url: str) -> Generator[FrontDoor]:
    client, followed = FakeToolAgentClient(), threading.Event()
    servers = [_Server(client, database_url, 0, followed)]

    def restart() -> None:
        servers[0].end()
        servers[0] = _Server(client, database_url, servers[0].port, followed)

    try:
        yield FrontDoor(f"http://127.0.0.1:{servers[0].port}", client, database_url, restart, followed)
    finally:
        servers[0].end()
