"""Tools that share a process: it is started for the first of them, and ends with the last."""

import asyncio
import math
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
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


class _Process:
    """`running` is unset while it starts. `why`: how it ended, if it was ended for all."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.start: SharedStart[str, Running] | None = None
        self.running: Running | None = None
        self.uses: set[_Use] = set()
        self.calls = 0
        self.why: str | None = None
        self.watch: asyncio.Task[None] | None = None
        self.ending: asyncio.Task[None] | None = None


class _Use:
    """One tool's part in a process. `over` says how it ended, `left` that only this tool was stopped."""

    def __init__(self, process: _Process) -> None:
        self.process, self.calls = process, 0
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.left = asyncio.Event()

    def end(self, how: str) -> None:
        if not self.over.done():
            self.over.set_result(how)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Member(Running):
    """The process, as one tool sees it."""

    use: _Use


class SharedProcesses:
    """The runtime of sources that name a process, above the one that starts it. Each tool starts and stops as if it had one of its own."""

    def __init__(self, runtime: _MortalRuntime) -> None:
        self._runtime = runtime
        self._processes: dict[str, _Process] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def start(self, tool: ToolManifest, source: PackedSource, progress: Progress) -> Running:
        process, start = await self._open(tool, source)
        # Counted before the first await, so that the process does not look unused meanwhile.
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
        # The process goes on for others, and so may what it was asked for.
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
        """The same for all tools that are in it."""
        return _use_of(running)[0].process

    async def vitals(self, running: Running, source: PackedSource, timeout_s: float) -> Vitals:
        if not isinstance(self._runtime, Examined):
            return Vitals(is_well=True)
        return await self._runtime.vitals(_use_of(running)[1], source, timeout_s)

    @property
    def ttl_s(self) -> float:
        return self._runtime.ttl_s if isinstance(self._runtime, Expiring) else math.inf

    def serves_others(self, running: Running) -> bool:
        """Whether other tools than this one have calls in the process."""
        use, _ = _use_of(running)
        return use.process.calls > use.calls

    def condemn(self, running: Running, how: str) -> None:
        """The process is useless to all of its tools: it is ended for all, and they are told `how`. A stop waits for that."""
        process = _use_of(running)[0].process
        process.why = process.why or how
        self._forget(process)
        self._spawn(self._end(process))

    async def _open(self, tool: ToolManifest, source: PackedSource) -> tuple[_Process, SharedStart[str, Running]]:
        """The process that the tool belongs to, up or starting."""
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
        """Whether one may join; if not, it has ended when this returns, as the next start writes to the same files."""
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
        """The waiter for its start may have been cancelled when it was up."""
        if process.running is not None and not process.uses:
            await self._end(process)

    async def _end(self, process: _Process) -> None:
        # Before the first await: a call that comes now starts another.
        self._forget(process)
        if process.ending is None and process.running is not None:
            process.ending = self._spawn(self._runtime.stop(process.running))
        if process.ending is not None:
            # A waiter may be cancelled; the stop may not.
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
    """And the process as the runtime below knows it."""
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
    """End what has not ended, and wait for it: connections are closed before the caller goes on."""
    for task in tasks:
        # The failure of one that has ended is not read, and asyncio would complain.
        task.add_done_callback(lambda one: one.cancelled() or one.exception())
        task.cancel()
    await asyncio.wait(tasks)
