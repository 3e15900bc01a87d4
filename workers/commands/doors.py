"""`python -m workers api --processes N`: several front doors behind one port, and the process that starts, watches and stops them."""

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
"""For closing connections, lanes and leases, after the grace."""

_LONGEST_PAUSE_S = 30.0
_CANNOT_RUN = 1
_ASKING = (signal.SIGINT, signal.SIGTERM)

_FORKS = multiprocessing.get_context("fork")
"""Each door is a fork of this process, which has loaded the program: that takes seconds of processor. So it may have no threads."""

_log = structlog.stdlib.get_logger(__name__)


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
    with bound_socket(settings.front) as listener:
        house = _House(settings, listener, processes, asked_to_stop)
        try:
            await house.run()
        finally:
            await house.stop(settings.calls.shutdown_grace_s + _LAST_S)
    return _CANNOT_RUN if house.has_failed else 0


@dataclass(frozen=True, slots=True)
class _Door:
    """A process, and where it says that it answers requests. This closes with ours, too: so it sees that it has no parent."""

    process: ForkProcess
    told: socket.socket

    async def answers(self) -> bool:
        """Wait until it does; False when it has ended before."""
        return bool(await asyncio.get_running_loop().sock_recv(self.told, 1))

    async def ended(self) -> None:
        await _readable(self.process.sentinel)


class _House:
    """The doors, one for each place; one that has ended is followed by another."""

    def __init__(self, settings: Settings, listener: socket.socket, processes: int, asked_to_stop: asyncio.Event) -> None:
        self._settings, self._listener, self._asked_to_stop = settings, listener, asked_to_stop
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
            # What is wrong with the settings is said once.
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
        """When it has ended: whether it ever did."""
        has_answered = await door.answers()
        if has_answered:
            self._say_ready(place)
        await door.ended()
        door.told.close()
        door.process.join()
        return has_answered

    def _forked(self) -> _Door | None:
        """None, and why is said, where there can be no other process."""
        try:
            told, tell = socket.socketpair()
        except OSError as problem:
            return _not_started(problem)
        told.setblocking(False)
        ours = (told, *(door.told for door in self._doors if door is not None))
        process = _FORKS.Process(target=_run_door, args=(self._settings, self._listener, tell, ours), name="door")
        # Until it has handlers of its own, what it is sent would come to our loop.
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
    # The one of the listing itself is closed by then.
    return frozenset(int(one.name) for one in [*Path("/dev/fd").iterdir()] if one.exists())


def _close_new(before: frozenset[int]) -> None:
    """`multiprocessing` opens two pipes, and leaves them where it cannot fork; this process has no thread that opens anything meanwhile."""
    for descriptor in _descriptors() - before:
        os.close(descriptor)


def _not_started(problem: OSError) -> None:
    _log.error("door_not_started", reason=str(problem))


def _run_door(settings: Settings, listener: socket.socket, tell: socket.socket, of_parent: tuple[socket.socket, ...]) -> None:
    """One front door, in a process of its own, which a Ctrl-C at the terminal does not reach: the parent says when to stop."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in _ASKING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKING)
    for told in of_parent:
        os.close(told.detach())  # as long as it is open, no door sees that the parent is gone
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
    for number in _ASKING:
        loop.add_signal_handler(number, asked_to_stop.set)
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
