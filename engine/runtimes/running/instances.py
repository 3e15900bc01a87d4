"""The tools that run on this host: at most one process for each version of a tool; several tools may share one."""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog
from pydantic import JsonValue

from engine.runtimes.failures import NotSent, RuntimeFailure, no_answer, stopped
from engine.runtimes.running.route_board import RouteBoard
from engine.runtimes.running.shared_processes import SharedProcesses
from engine.runtimes.running.shared_start import SharedStart
from engine.runtimes.runtime import AnyRuntime, Mortal, Progress, Retired, Running
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.routes import RunState
from toolagent.contracts.sources import ToolSource
from toolagent.core.failures import StoreUnavailableError

Key: TypeAlias = tuple[str, str]
"""Tool id and version."""

_SEEN_ENDED_S = 0.5

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def key_of(entry: ToolEntry) -> Key:
    return entry.manifest.tool_id, entry.manifest.version


@dataclass(slots=True, eq=False)
class Instance:
    """One started tool, by the source with this index.

    `is_out`: it is being stopped and takes no more calls. `is_retired`: it was replaced and ends with its last call. `used` is by the
    monotonic clock.
    """

    key: Key
    index: int
    source: ToolSource
    runtime: AnyRuntime
    running: Running
    in_flight: int = 0
    is_retired: bool = False
    is_out: bool = False
    used: float = field(default_factory=time.monotonic)
    failed_checks: int = 0
    watcher: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class _Sent:
    """A request at a tool."""

    instance: Instance
    limit: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def outlives_stop(self) -> bool:
        """Whether it is at none of the tool's processes, or at one that was replaced."""
        return self.instance.is_retired or not isinstance(self.instance.runtime, Mortal)


Life: TypeAlias = tuple[Instance, ...]
"""The tools of one process, which end together. Never empty."""


class Instances:
    """Starts and stops tools, and tells `board`."""

    def __init__(self, runtimes: Mapping[str, AnyRuntime], board: RouteBoard) -> None:
        self._runtimes, self._board = runtimes, board
        self._sharing: dict[str, SharedProcesses] = {}
        self._up: dict[Key, Instance] = {}
        self._starts: dict[Key, SharedStart[ToolSource, Instance]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._stops: dict[str, int] = {}
        self._sent: set[_Sent] = set()
        self._is_closed = False

    def get(self, key: Key) -> Instance | None:
        return self._up.get(key)

    def lives(self) -> tuple[Life, ...]:
        """The running processes and connections; tools that share one stand together."""
        found: dict[object, list[Instance]] = {}
        for instance in self._up.values():
            if isinstance(instance.runtime, SharedProcesses):
                found.setdefault(instance.runtime.process_of(instance.running), []).append(instance)
            elif isinstance(instance.runtime, Mortal):
                found[instance] = [instance]
        return tuple(map(tuple, found.values()))

    def is_starting(self, tool_id: str) -> bool:
        return any(key[0] == tool_id and not start.is_over for key, start in self._starts.items())

    def stops(self, tool_id: str) -> int:
        """How often the tool was stopped. Compared before and after a wait, this shows whether it was stopped meanwhile."""
        return self._stops.get(tool_id, 0)

    def require_not_stopped(self, tool_id: str, stops: int) -> None:
        """Raises NotSent if the tool was stopped since `stops` was noted: calls that waited then must not go on."""
        if self.stops(tool_id) != stops:
            raise stopped()

    async def ensure(self, entry: ToolEntry, index: int, progress: Progress, stops: int) -> Instance:
        """The tool, running by this source, or by another one that is being started; concurrent calls wait for one start.

        Raises NotSent, also if the tool was stopped since the caller noted `stops`: a stopped tool must not start by itself.
        """
        key, source = key_of(entry), entry.sources[index]
        while True:
            self.require_not_stopped(key[0], stops)
            up = self._up.get(key)
            if up is not None and up.source == source:
                if await up.runtime.is_alive(up.running):
                    return up
                await self._lost(up)
                continue
            begun = self._starts.get(key)
            if begun is None or begun.is_over:
                begun = self._starts[key] = self._begin(entry, index)
            elif not begun.is_open:
                await begun.over()
                continue
            try:
                return await begun.wait(progress)
            except NotSent:
                if begun.subject == source:
                    raise

    @contextmanager
    def using(self, instance: Instance) -> Generator[None, None, None]:
        """Counts a call while it uses the instance. A replaced instance ends with its last call. Raises NotSent if it is out."""
        if instance.is_out:
            raise NotSent(ErrorType.UNAVAILABLE, "The tool was stopped a moment ago.")
        instance.in_flight += 1
        try:
            yield
        finally:
            instance.in_flight -= 1
            instance.used = time.monotonic()
            self._end_if_done(instance)

    @asynccontextmanager
    async def until_stopped(self, instance: Instance) -> AsyncGenerator[None]:
        """For a request at the tool. Raises CallFailed if the tool is stopped, unless the end of its process ends the request."""
        sent = _Sent(instance)
        self._sent.add(sent)
        try:
            async with sent.limit:
                yield
        except TimeoutError:
            if not sent.limit.expired():
                raise
            raise no_answer("The tool was stopped before it had answered.") from None
        finally:
            self._sent.discard(sent)
            sent.over.set()

    def serves(self, instance: Instance) -> bool:
        """Whether calls are running in its process, also calls of other tools."""
        return instance.in_flight > 0 or self._serves_others(instance)

    def _serves_others(self, instance: Instance) -> bool:
        return isinstance(instance.runtime, SharedProcesses) and instance.runtime.serves_others(instance.running)

    async def replace(self, instance: Instance, state: RunState, why: str) -> None:
        """Ends the process, for all tools that share it; the next call starts another."""
        if isinstance(instance.runtime, SharedProcesses) and await instance.runtime.is_alive(instance.running):
            instance.runtime.condemn(instance.running, Retired(why) if state is RunState.STOPPED else why)
        await self.discard(instance, state, why)

    async def discard(self, instance: Instance, state: RunState, why: str | None) -> None:
        """Ends the instance; the next call starts the tool anew."""
        await self._discard((instance,), state, why)

    async def retire(self, life: Life) -> bool:
        """Stops unused tools, unless a call has come by now; the next call starts them anew."""
        if any(self.serves(instance) or self.is_starting(instance.key[0]) for instance in life):
            return False
        await self._discard(life, RunState.STOPPED, None)
        return True

    async def _discard(self, life: Life, state: RunState, why: str | None) -> None:
        # All are out before the first await: a call that comes now starts another instance.
        were_up = [self._take_out(instance) for instance in life]
        ends = [self._spawn(self._end(one, state, why, tell=was_up)) for one, was_up in zip(life, were_up, strict=True)]
        # The caller may be cancelled; the stop must not be.
        await asyncio.shield(asyncio.gather(*ends))

    def _take_out(self, instance: Instance) -> bool:
        """Takes no more calls for it. Returns whether it was running."""
        was_up = self._up.get(instance.key) is instance
        if was_up:
            del self._up[instance.key]
        instance.is_out = True
        return was_up

    async def explain(self, instance: Instance, failure: RuntimeFailure) -> None:
        """Adds to the failure of a call how the process ended, if it has, and whether it served other calls."""
        if instance.watcher is None:
            return
        others = instance.in_flight > 1 or self._serves_others(instance)
        await asyncio.wait([instance.watcher], timeout=_SEEN_ENDED_S)
        if instance.watcher.done():
            route = self._board.route(instance.key[0])
            failure.explain(tool_ended=route.last_error if route else None, **({"other_calls": True} if others else {}))

    async def stop_tool(self, tool_id: str) -> None:
        """Ends all versions of a tool, also those that are starting, and its calls. Calls that wait for it do not start it again."""
        self._stops[tool_id] = self.stops(tool_id) + 1
        # Taking it down ends no others: that is also done to a changed tool, whose earlier calls go on.
        cut = [sent for sent in self._sent if sent.instance.key[0] == tool_id and sent.outlives_stop]
        for sent in cut:
            if not sent.limit.expired():
                sent.limit.reschedule(asyncio.get_running_loop().time())
        await self._take_down(tool_id)
        await asyncio.gather(*[sent.over.wait() for sent in cut])

    async def _take_down(self, tool_id: str) -> None:
        await asyncio.gather(*[start.cancel() for key, start in list(self._starts.items()) if key[0] == tool_id])
        found = [instance for key, instance in self._up.items() if key[0] == tool_id]
        await asyncio.gather(*[self.discard(instance, RunState.STOPPED, None) for instance in found])

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.gather(*[self._take_down(tool_id) for tool_id in {key[0] for key in (*self._up, *self._starts)}])
        await asyncio.gather(*self._background)

    def _begin(self, entry: ToolEntry, index: int) -> SharedStart[ToolSource, Instance]:
        return SharedStart(entry.sources[index], lambda progress: self._start(entry, index, progress))

    async def _start(self, entry: ToolEntry, index: int, progress: Progress) -> Instance:
        source = entry.sources[index]
        runtime = self._runtime_of(source)
        try:
            if isinstance(runtime, Mortal):
                await self._board.starting(entry, index)
            running = await runtime.start(entry.manifest, source, progress)
        except BaseException as error:
            await self._note_end(key_of(entry), *_state_after(error))
            raise
        instance = Instance(key_of(entry), index, source, runtime, running)
        replaced = self._up.get(instance.key)
        self._up[instance.key] = instance
        if isinstance(runtime, Mortal):
            instance.watcher = self._spawn(self._watch(instance, runtime))
        if replaced is not None:
            replaced.is_retired = True
            self._end_if_done(replaced)
        await self._board.running(entry, index, running)
        return instance

    def _runtime_of(self, source: ToolSource) -> AnyRuntime:
        if self._is_closed:
            raise NotSent(ErrorType.UNAVAILABLE, "This host is shutting down.")
        runtime = self._runtimes.get(source.type)
        if runtime is None:
            there: list[JsonValue] = [*sorted(self._runtimes)]
            raise NotSent(ErrorType.EXECUTOR_NOT_FOUND, f"Sources of type {source.type!r} are not executed here.", {"executed": there})
        if source.shared_process is None or not isinstance(runtime, Mortal):
            return runtime
        return self._sharing.setdefault(source.type, SharedProcesses(runtime))

    async def _watch(self, instance: Instance, runtime: Mortal) -> None:
        how = await runtime.ended(instance.running)
        if self._up.get(instance.key) is instance:
            del self._up[instance.key]
            await self._note_end(instance.key, RunState.STOPPED if isinstance(how, Retired) else RunState.ERROR, how)

    async def _lost(self, instance: Instance) -> None:
        """Waits until the end of the tool is noted, because the next start writes to the same files."""
        if instance.watcher is not None:
            await asyncio.wait([instance.watcher])
        await self.discard(instance, RunState.ERROR, "It has ended.")

    async def _end(self, instance: Instance, state: RunState, why: str | None, *, tell: bool) -> None:
        try:
            if tell:
                # Before the stop: a new start may begin meanwhile, and its state must be written last.
                await self._note_end(instance.key, state, why)
        finally:
            # Also if the end cannot be noted.
            await instance.runtime.stop(instance.running)

    async def _note_end(self, key: Key, state: RunState, why: str | None) -> None:
        """Records the end. While the host closes, a failure to record is only logged: the next start records the state."""
        try:
            await self._board.ended(*key, state, why)
        except StoreUnavailableError as error:
            if not self._is_closed:
                raise
            _log.warning("end_of_tool_not_noted", tool_id=key[0], reason=str(error))

    def _end_if_done(self, instance: Instance) -> None:
        if instance.is_retired and not instance.in_flight:
            self._spawn(instance.runtime.stop(instance.running))

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _state_after(error: BaseException) -> tuple[RunState, str | None]:
    """The state after a failed start, and its error."""
    match error:
        case asyncio.CancelledError():
            return RunState.STOPPED, None
        case RuntimeFailure(message=message):
            return RunState.ERROR, message
        case _:
            return RunState.ERROR, f"{type(error).__name__}: {error}"
