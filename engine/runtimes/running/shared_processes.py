"""Tools that share a process, which starts with the first of them and ends with the last."""

import asyncio
import math
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.running.shared_start import SharedStart
from engine.runtimes.runtime import Examined, Expiring, Mortal, Offer, Offering, Progress, Retired, Running, Runtime, ToolRequest, Vitals
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import PackedSource
from toolagent_service.calls.shared_processes import process_key


class _MortalRuntime(Runtime[Any], Mortal, Protocol): ...


@dataclass(slots=True, eq=False)
class _Process:
    """`running` is None while it starts. `why`: how it ended, if it was ended for all its tools."""

    key: str
    start: SharedStart[str, Running] | None = None
    running: Running | None = None
    uses: "set[_Use]" = field(default_factory=set["_Use"])
    calls: int = 0
    why: str | None = None
    watch: asyncio.Task[None] | None = None
    ending: asyncio.Task[None] | None = None


class _Use:
    """One tool in a process. `over` holds how it ended; `left`: only this tool was stopped."""

    def __init__(self, process: _Process) -> None:
        self.process, self.calls = process, 0
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.left = asyncio.Event()

    def end(self, how: str) -> None:
        if not self.over.done():
            self.over.set_result(how)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Member(Running):
    """The process as one tool's Running."""

    use: _Use


class SharedProcesses:
    """A runtime for sources that name a process, on top of the runtime that starts it. Each tool starts and stops as if it had its own."""

    def __init__(self, runtime: _MortalRuntime) -> None:
        self._runtime = runtime
        self._processes: dict[str, _Process] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def start(self, tool: ToolManifest, source: PackedSource, progress: Progress) -> Running:
        process, start = await self._open(tool, source)
        # Counts the use before the first await, so that the process does not look unused meanwhile.
        use = _Use(process)
        process.uses.add(use)
        try:
            running = await start.wait(progress)
        except BaseException:
            process.uses.discard(use)
            await self._end_if_unused(process)
            raise
        return _Member(endpoint=running.endpoint, started_at=running.started_at, pid=running.pid, port=running.port, use=use)

    async def is_alive(self, running: Running) -> bool:
        use, up = _use_of(running)
        return not use.over.done() and use.process.why is None and await self._runtime.is_alive(up)

    async def is_idle(self, running: Running, source: PackedSource) -> bool:
        return await self._runtime.is_idle(_use_of(running)[1], source)

    async def call(self, running: Running, source: PackedSource, request: ToolRequest) -> JsonValue:
        use, up = _use_of(running)
        if use.over.done():
            raise NotSent(ErrorType.UNAVAILABLE, "The tool has ended.", {"endpoint": up.endpoint})
        with _counted(use):
            asking, leaving = asyncio.ensure_future(self._runtime.call(up, source, request)), asyncio.ensure_future(use.left.wait())
            try:
                await asyncio.wait([asking, leaving], return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    return asking.result()
            finally:
                await _cancelled(asking, leaving)
        # The process goes on for other tools, so the stopped call may go on too.
        message = "The tool was stopped before it had answered."
        raise CallFailed(ErrorType.EXECUTION_ERROR, message, {"outcome": "unknown"}, outcome="unknown")

    async def offered(self, running: Running, source: PackedSource, offer: Offer) -> dict[str, JsonValue]:
        use, up = _use_of(running)
        if use.over.done() or not isinstance(self._runtime, Offering):
            raise NotSent(ErrorType.UNAVAILABLE, "The tool has ended.", {"endpoint": up.endpoint})
        with _counted(use):
            return await self._runtime.offered(up, source, offer)

    async def stop(self, running: Running) -> None:
        use, _ = _use_of(running)
        process = use.process
        if use.over.done():
            return
        if process.why is None and process.uses - {use}:
            process.uses.discard(use)
            use.left.set()
            use.end(Retired("stopped; others go on in its process"))
            return
        await self._end(process)

    async def ended(self, running: Running) -> str:
        return await asyncio.shield(_use_of(running)[0].over)

    def process_of(self, running: Running) -> object:
        """The process, the same object for all its tools."""
        return _use_of(running)[0].process

    async def vitals(self, running: Running, source: PackedSource, timeout_s: float) -> Vitals:
        if not isinstance(self._runtime, Examined):
            return Vitals(is_well=True)
        return await self._runtime.vitals(_use_of(running)[1], source, timeout_s)

    @property
    def ttl_s(self) -> float:
        return self._runtime.ttl_s if isinstance(self._runtime, Expiring) else math.inf

    def serves_others(self, running: Running) -> bool:
        """Whether other tools have calls in the process."""
        use, _ = _use_of(running)
        return use.process.calls > use.calls

    def condemn(self, running: Running, how: str) -> None:
        """Ends the process for all its tools, for the reason `how`. A later stop waits for that."""
        process = _use_of(running)[0].process
        process.why = process.why or how
        self._forget(process)
        self._spawn(self._end(process))

    async def _open(self, tool: ToolManifest, source: PackedSource) -> tuple[_Process, SharedStart[str, Running]]:
        """The process of the tool, running or starting."""
        key = process_key(tool, source) or tool.tool_id
        while True:
            process = self._processes.get(key)
            if process is None or process.start is None or (process.start.is_over and process.running is None):
                process = self._processes[key] = _Process(key)
                process.start = SharedStart(key, lambda tell, begun=process: self._begin(begun, tool, source, tell))
                return process, process.start
            if await self._is_open(process) and self._processes.get(key) is process:
                return process, process.start

    async def _is_open(self, process: _Process) -> bool:
        """Whether a tool may join. If not, this returns after the process has ended, because the next start writes to the same files."""
        if process.running is None:
            if process.start is None or process.start.is_open:
                return True
            await process.start.over()
            return False
        if await self._runtime.is_alive(process.running):
            return True
        if process.watch is not None:
            await asyncio.wait([process.watch])
        return False

    async def _begin(self, process: _Process, tool: ToolManifest, source: PackedSource, progress: Progress) -> Running:
        try:
            process.running = await self._runtime.start(tool, source, progress)
        except BaseException:
            self._forget(process)
            raise
        process.watch = self._spawn(self._watch(process, process.running))
        return process.running

    async def _watch(self, process: _Process, running: Running) -> None:
        how = await self._runtime.ended(running)
        self._forget(process)
        for use in process.uses:
            use.end(process.why or how)

    async def _end_if_unused(self, process: _Process) -> None:
        """Ends a process that came up although its only waiter was cancelled."""
        if process.running is not None and not process.uses:
            await self._end(process)

    async def _end(self, process: _Process) -> None:
        # Before the first await: a call that comes now starts another process.
        self._forget(process)
        if process.ending is None and process.running is not None:
            process.ending = self._spawn(self._runtime.stop(process.running))
        if process.ending is not None:
            # The caller may be cancelled; the stop must not be.
            await asyncio.shield(process.ending)

    def _forget(self, process: _Process) -> None:
        if self._processes.get(process.key) is process:
            del self._processes[process.key]

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _use_of(running: Running) -> tuple[_Use, Running]:
    """The tool's use, and the process as a Running of the runtime below."""
    if not isinstance(running, _Member) or running.use.process.running is None:
        raise TypeError("It was not started here.")
    return running.use, running.use.process.running


@contextmanager
def _counted(use: _Use) -> Generator[None]:
    use.calls += 1
    use.process.calls += 1
    try:
        yield
    finally:
        use.calls -= 1
        use.process.calls -= 1


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancels the tasks and waits for their end, so that connections are closed before the caller goes on."""
    for task in tasks:
        # Reads the failure of an ended task: otherwise asyncio would complain.
        task.add_done_callback(lambda one: one.cancelled() or one.exception())
        task.cancel()
    await asyncio.wait(tasks)
