"""`python -m workers api --processes N`: starts, watches and stops several front doors behind one port."""

import asyncio
import multiprocessing
import os
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path

import structlog
import uvloop
from rich.console import Console

from toolagent.validation.checkers import end_checks
from workers.collector import spare_what_stays
from workers.commands.stopping import stop_on_signals
from workers.failures import CannotRun
from workers.front.door import bound_socket
from workers.ports import url_of
from workers.service import named_address, named_database, running_api
from workers.settings.whole import Settings

_LAST_S = 20.0
"""Time after the grace for closing connections, lanes and leases."""

_LONGEST_PAUSE_S = 30.0
_CANNOT_RUN = 1
_ASKING = (signal.SIGINT, signal.SIGTERM)

_FORKS = multiprocessing.get_context("fork")
"""Each door is a fork of this process, because loading the program takes seconds of processor time. So this process may have no threads."""

_log = structlog.stdlib.get_logger(__name__)


async def doors(settings: Settings, processes: int) -> int:
    """Run front doors until a signal comes. Returns the exit code. Raises CannotRun."""
    named_address(settings.temporal)
    if named_database(settings.database).startswith("sqlite"):
        raise CannotRun(
            "Several front doors need PostgreSQL: TOOL_AGENT_DATABASE_URL names SQLite, which one process at a time can write to. "
            "Set it to postgresql+asyncpg://…, or leave out --processes."
        )
    asked_to_stop = asyncio.Event()
    stop_on_signals(asked_to_stop)
    with bound_socket(settings.front) as listener:
        house = _House(settings, listener, processes, asked_to_stop)
        try:
            await house.run()
        finally:
            await house.stop(settings.calls.shutdown_grace_s + _LAST_S)
    return _CANNOT_RUN if house.has_failed else 0


@dataclass(frozen=True, slots=True)
class _Door:
    """A process, and the socket by which it reports that it answers. If we die, the socket closes, and the process stops."""

    process: ForkProcess
    told: socket.socket

    async def answers(self) -> bool:
        """Wait until the door answers; False if it ended before."""
        return bool(await asyncio.get_running_loop().sock_recv(self.told, 1))

    async def ended(self) -> None:
        await _readable(self.process.sentinel)


class _House:
    """The doors, one for each place. A door that ends is replaced."""

    def __init__(self, settings: Settings, listener: socket.socket, processes: int, asked_to_stop: asyncio.Event) -> None:
        self._settings, self._listener, self._asked_to_stop = settings, listener, asked_to_stop
        self._doors: list[_Door | None] = [None] * processes
        self._console = Console(stderr=True)
        self._answering: set[int] = set()
        self._is_begun = asyncio.Event()
        self.has_failed = False
        """The first doors could not run. The reason was printed."""

    async def run(self) -> None:
        """Run until asked to stop, or failed."""
        self._console.print(f"[bold]Tool Agent API[/bold] is starting: {len(self._doors)} processes …")
        keeping = [asyncio.create_task(self._keep(place), name=f"door {place}") for place in range(len(self._doors))]
        try:
            await self._asked_to_stop.wait()
        finally:
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)

    async def stop(self, bound_s: float) -> None:
        """Stop the doors in order; kill those that take longer than the bound."""
        left = [door for door in self._doors if door is not None]
        if left:
            self._console.print("Stopping: running calls are given a moment …")
        for door in left:
            door.process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(bound_s):
                await asyncio.gather(*(door.ended() for door in left))
        for door in left:
            door.process.kill()
            door.process.join()
        self._console.print("Stopped.")

    async def _keep(self, place: int) -> None:
        if place:
            # Only the first door reports wrong settings.
            await self._is_begun.wait()
        pause_s = 0.0
        while True:
            door = self._doors[place] = self._forked()
            has_answered = door is not None and await self._has_answered(door, place)
            self._doors[place] = None
            if not self._answering:
                self.has_failed = True
                self._asked_to_stop.set()
                return
            pause_s = 0.0 if has_answered else min(max(1.0, 2 * pause_s), _LONGEST_PAUSE_S)
            if door is not None:
                _log.error("door_ended", code=door.process.exitcode, then=f"another is started in {pause_s:g} s")
            await asyncio.sleep(pause_s)

    async def _has_answered(self, door: _Door, place: int) -> bool:
        """Whether the door ever answered, once it has ended."""
        has_answered = await door.answers()
        if has_answered:
            self._say_ready(place)
        await door.ended()
        door.told.close()
        door.process.join()
        return has_answered

    def _forked(self) -> _Door | None:
        """A new door; None, and a message in the log, if there can be no other process."""
        try:
            told, tell = socket.socketpair()
        except OSError as problem:
            return _not_started(problem)
        told.setblocking(False)
        ours = (told, *(door.told for door in self._doors if door is not None))
        process = _FORKS.Process(target=_run_door, args=(self._settings, self._listener, tell, ours), name="door")
        # Before the door has handlers of its own, its signals would come to our loop.
        signal.pthread_sigmask(signal.SIG_BLOCK, _ASKING)
        before = _descriptors()
        try:
            process.start()
        except OSError as problem:
            told.close()
            _close_new(before)
            return _not_started(problem)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKING)
            tell.close()
        return _Door(process, told)

    def _say_ready(self, place: int) -> None:
        is_news = len(self._answering) < len(self._doors)
        self._answering.add(place)
        self._is_begun.set()
        if is_news and len(self._answering) == len(self._doors):
            url = url_of(self._listener)
            self._console.print(f"API   {url}\ndocs  {url}/docs\n[green]ready[/green] (Ctrl-C stops it)")


def _descriptors() -> frozenset[int]:
    # The descriptor of the listing itself is closed by then.
    return frozenset(int(one.name) for one in [*Path("/dev/fd").iterdir()] if one.exists())


def _close_new(before: frozenset[int]) -> None:
    """Close the pipes that `multiprocessing` leaves if it cannot fork. No other thread opens descriptors meanwhile."""
    for descriptor in _descriptors() - before:
        os.close(descriptor)


def _not_started(problem: OSError) -> None:
    _log.error("door_not_started", reason=str(problem))


def _run_door(settings: Settings, listener: socket.socket, tell: socket.socket, of_parent: tuple[socket.socket, ...]) -> None:
    """One front door in a process of its own. A Ctrl-C at the terminal does not reach it: the parent stops it."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in _ASKING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKING)
    for told in of_parent:
        os.close(told.detach())  # while it is open here, no door sees that the parent is gone
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, listener, tell))
    except CannotRun as problem:
        Console(stderr=True).print(str(problem), style="red", markup=False)
        sys.exit(_CANNOT_RUN)
    finally:
        # Otherwise the process would wait for its threads.
        end_checks()


async def _serve(settings: Settings, listener: socket.socket, tell: socket.socket) -> None:
    """Serve until the parent asks to stop, or is gone."""
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ASKING:
        loop.add_signal_handler(number, asked_to_stop.set)
    orphaned = asyncio.create_task(_readable(tell.fileno()), name="parent")
    orphaned.add_done_callback(lambda _: asked_to_stop.set())
    async with running_api(settings, listener):
        spare_what_stays()
        with suppress(BrokenPipeError):  # the parent is gone
            tell.sendall(b"1")
        await asked_to_stop.wait()
        # After the grace, checks end, so that calls end.
        loop.call_later(settings.calls.shutdown_grace_s, end_checks)
    orphaned.cancel()


async def _readable(descriptor: int) -> None:
    """Wait until the descriptor can be read, or its other end is closed."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    loop.add_reader(descriptor, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(descriptor)
