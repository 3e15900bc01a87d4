"""A candidate whose answers to invalid calls do not end."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from engine.making.gate.sightings import Sightings
from engine.making.gate.subject import Came
from engine.making.gate.trial import Trial, TrialLimits
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Progress
from tests.making.gate.conftest import Court, Notes, entry_of
from tests.runtimes.conftest import silent
from toolagent.contracts.calls import Caller
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.routes import RunState, ToolRoute

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
MIB = 1 << 20


class Up:
    """A Supervisor of a running tool."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def start(self, entry: ToolEntry, progress: Progress) -> ToolRoute:  # noqa: ARG002 - the supervisor's
        route = ToolRoute(tool_id=entry.manifest.tool_id, endpoint=f"unix:{self._socket}", state=RunState.RUNNING, active_source=0)
        return await asyncio.sleep(0, route)


@asynccontextmanager
async def trial_of(parts: RuntimeParts, socket: Path, serve: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncGenerator[Trial]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"[[]]")
        writer.write(HEAD)
        try:
            await serve(writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(answer, socket)
    caller, limits = Caller(caller_id="create_00000000", caller_type="gate"), TrialLimits(call_s=1.0)
    async with server:
        yield Trial((entry_of(),), cast("Supervisor", Up(socket)), Sightings(Notes()), parts, None, limits, silent, caller)


async def test_no_more_of_it_is_read_than_is_told(court: Court, tmp_path: Path) -> None:
    sent = 0

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < 64 * MIB:
            writer.write(b"x" * MIB)
            sent += MIB
            await writer.drain()

    async with trial_of(court.parts, tmp_path / "flood.sock", flood) as trial:
        assert (await trial.send("reckoner", b"[[]]")).came is Came.ANSWER
    assert sent < 16 * MIB


async def test_who_answers_a_byte_at_a_time_is_not_waited_for(court: Court, tmp_path: Path) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        for _ in itertools.count():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.1)

    async with trial_of(court.parts, tmp_path / "drip.sock", drip) as trial, asyncio.timeout(10):
        reply = await trial.send("reckoner", b"[[]]")
    assert (reply.came, "within 1 s" in reply.message) == (Came.SILENCE, True)
