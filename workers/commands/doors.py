"""`python -m workers api --processes N`: several front doors behind one port, and the process that starts, watches and stops them."""

import asyncio
import multiprocessing
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.context import ForkServerProcess

import structlog
import uvloop
from rich.console import Console

from toolagent.validation.checkers import end_checks
from workers.collector import spare_what_stays
from workers.commands.stopping import stop_on_signals
from workers.failures import CannotRun
from workers.front.door import bound_socket
from workers.logs import configure_logging
from workers.ports import url_of
from workers.service import named_address, named_database, running_api
from workers.settings.whole import Settings

_LAST_S = 20.0
"""For closing connections, lanes and leases, after the grace."""

_LONGEST_PAUSE_S = 30.0
_CANNOT_RUN = 1
_ASKING = (signal.SIGINT, signal.SIGTERM)

_FORKS = multiprocessing.get_context("forkserver")
"""One process loads the program, and each door is a fork of it: loading takes seconds of processor."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def doors(settings: Settings, processes: int) -> int:
    """Run them until a signal comes. Returns the exit code. Raises CannotRun."""
    named_address(settings.temporal)
    if named_database(settings.database).startswith("sqlite"):
        raise CannotRun(
            "Several front doors need PostgreSQL: TOOL_AGENT_DATABASE_URL names SQLite, which one process at a time can write to. "
            "Set it to postgresql+asyncpg://…, or leave out --processes."
        )
    asked_to_stop = asyncio.Event()
    stop_on_signals(asked_to_stop)
    _FORKS.set_forkserver_preload([__name__])
    with bound_socket(settings.front) as listener:
        house = _House(listener, processes, asked_to_stop)
        try:
            await house.run()
        finally:
            await house.stop(settings.calls.shutdown_grace_s + _LAST_S)
    return _CANNOT_RUN if house.has_failed else 0


@dataclass(frozen=True, slots=True)
class _Door:
    """A process, and where it says that it answers requests. This is closed when either end has ended: so each sees that of the other."""

    process: ForkServerProcess
    told: socket.socket

    @property
    def is_left(self) -> bool:
        return self.told.fileno() >= 0

    async def answers(self) -> bool:
        """Wait until it does; False when it has ended before."""
        return bool(await asyncio.get_running_loop().sock_recv(self.told, 1))

    async def ended(self) -> None:
        await _readable(self.told.fileno())


class _House:
    """The doors, one for each place; one that has ended is followed by another."""

    def __init__(self, listener: socket.socket, processes: int, asked_to_stop: asyncio.Event) -> None:
        self._listener, self._asked_to_stop = listener, asked_to_stop
        self._doors: list[_Door | None] = [None] * processes
        self._console = Console(stderr=True)
        self._answering: set[int] = set()
        self._is_begun = asyncio.Event()
        self.has_failed = False
        """The first doors could not run: none answers, and why was said."""

    async def run(self) -> None:
        """Until somebody asks to stop, or it has failed."""
        self._console.print(f"[bold]Tool Agent API[/bold] is starting: {len(self._doors)} processes …")
        keeping = [asyncio.create_task(self._keep(place), name=f"door {place}") for place in range(len(self._doors))]
        try:
            await self._asked_to_stop.wait()
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)

    async def stop(self, bound_s: float) -> None:
        """In order, as far as that goes within the bound."""
        left = [door for door in self._doors if door is not None and door.is_left]
        if left and not self.has_failed:
            self._console.print("Stopping: running calls are given a moment …")
        for door in left:
            door.process.terminate()
            with suppress(OSError):  # it has ended just now
                door.told.shutdown(socket.SHUT_WR)  # no signal reaches it once the process that it is a fork of was killed
        with suppress(TimeoutError):
            async with asyncio.timeout(bound_s):
                await asyncio.gather(*(door.ended() for door in left))
        for door in left:
            door.process.kill()
            door.process.join()
        self._console.print("Stopped.")

    async def _keep(self, place: int) -> None:
        if place:
            # What is wrong with the settings is said once.
            await self._is_begun.wait()
        pause_s = 0.0
        while True:
            door = self._doors[place] = await self._started()
            has_answered = await door.answers()
            if has_answered:
                self._say_ready(place)
            await door.ended()
            door.told.close()
            door.process.join()
            if not self._answering:
                self.has_failed = True
                self._asked_to_stop.set()
                return
            pause_s = 0.0 if has_answered else min(max(1.0, 2 * pause_s), _LONGEST_PAUSE_S)
            _log.error("door_ended", code=door.process.exitcode, then=f"another is started in {pause_s:g} s")
            await asyncio.sleep(pause_s)

    async def _started(self) -> _Door:
        told, tell = socket.socketpair()
        told.setblocking(False)
        door = _Door(_FORKS.Process(target=_run_door, args=(self._listener, tell), name="door"), told)
        try:
            await asyncio.to_thread(_start, door.process, tell)
        except asyncio.CancelledError:
            told.close()  # it ends as soon as it has begun
            raise
        return door

    def _say_ready(self, place: int) -> None:
        is_news = len(self._answering) < len(self._doors)
        self._answering.add(place)
        self._is_begun.set()
        if is_news and len(self._answering) == len(self._doors):
            url = url_of(self._listener)
            self._console.print(f"API   {url}\ndocs  {url}/docs\n[green]ready[/green] (Ctrl-C stops it)")


def _start(process: ForkServerProcess, tell: socket.socket) -> None:
    """Blocks, the first time until the program is loaded."""
    resource_tracker.ensure_running()  # it lifts the blockade
    # What is sent to all of us at once ends the doors in order, and not the process that they are forks of.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ASKING)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKING)
        tell.close()


def _run_door(listener: socket.socket, tell: socket.socket) -> None:
    """One front door, in a process of its own, which a Ctrl-C at the terminal does not reach: the parent says when to stop."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKING)
    if select.select([tell], [], [], 0)[0]:
        return  # the parent was asked to stop while the program was loaded
    settings = Settings()
    configure_logging(settings.log.log_level, settings.log.log_format)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, listener, tell))
    except CannotRun as problem:
        Console(stderr=True).print(str(problem), style="red", markup=False)
        sys.exit(_CANNOT_RUN)
    finally:
        # The program waits for its threads.
        end_checks()


async def _serve(settings: Settings, listener: socket.socket, tell: socket.socket) -> None:
    """Until the parent asks to stop, or is gone."""
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, asked_to_stop.set)
    orphaned = asyncio.create_task(_readable(tell.fileno()), name="parent")
    orphaned.add_done_callback(lambda _: asked_to_stop.set())
    async with running_api(settings, listener):
        spare_what_stays()
        with suppress(BrokenPipeError):  # the parent is gone
            tell.sendall(b"1")
        await asked_to_stop.wait()
        # Calls that are not done by then end, whatever is being checked for them.
        loop.call_later(settings.calls.shutdown_grace_s, end_checks)
    orphaned.cancel()


async def _readable(descriptor: int) -> None:
    """Wait until there is something to read, or its other end is closed."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(descriptor, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(descriptor)
