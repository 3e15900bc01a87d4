"""Runs this host's tools: starts them for the first call, notices when they end, sends each request once."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NoSlot, NotSent, StartFailed
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.instances import Instance, Instances, key_of
from engine.runtimes.running.keeping import Keeping
from engine.runtimes.running.route_board import Alert, RouteBoard, RouteStore, no_alert
from engine.runtimes.runtime import AnyRuntime, Installing, Mortal, Offer, Offering, PerCall, Progress
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.routes import RunState, ToolRoute

Aftermath = Literal["connection_closed", "processes_ended", "tool_idle", "tool_left_busy", "tool_stopped"]
"""What happened to a tool whose call was cancelled.

`connection_closed`: not our process, only the connection was closed; `processes_ended`: the processes served this call alone and ended;
`tool_idle`: the tool stopped working on it; `tool_left_busy`: it may go on, and serves other calls; `tool_stopped`: it went on and was
ended; the next call starts it anew.
"""

_IDLE_LOOK_S = 0.1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """The tool's answer. `duration_s` is in seconds, from sending to answer."""

    output: JsonValue
    active_source: int
    duration_s: float


class StartBudget:
    """The time that a call has to start its tool, over all sources; None is unlimited.

    Counts from now. Remembers the last progress message for the failure when time is up.
    """

    def __init__(self, tool_id: str, timeout_s: float | None, progress: Progress) -> None:
        self._tool_id, self._timeout_s, self._progress = tool_id, timeout_s, progress
        self._ends = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        self._doing = "looking whether it runs"
        self.ran_out = False

    def tell(self, message: str) -> None:
        """A Progress."""
        self._doing = message
        self._progress(message)

    async def spend(self, work: Coroutine[None, None, T]) -> T:
        """The outcome of the work. Cancels it and raises StartFailed (`unavailable`) when time is up."""
        limit = asyncio.timeout_at(self._ends)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            self.ran_out = True
            raise StartFailed(
                ErrorType.UNAVAILABLE,
                f"The tool {self._tool_id!r} was not up within {self._timeout_s:g} s; what was being done: {self._doing}.",
                {"timeout_s": self._timeout_s, "doing": self._doing},
            ) from None


class Supervisor:
    """Runs tools by `runtimes` (by source type). Saves every change of state to `routes`, and calls `alert` when a tool ends unexpectedly.

    Processes are kept by tool and version: a process of another version keeps serving its own calls. The owner calls `close`.
    """

    def __init__(
        self,
        runtimes: Mapping[str, AnyRuntime],
        routes: RouteStore,
        host: str,
        *,
        cancel_grace_s: float = 5.0,
        alert: Alert = no_alert,
    ) -> None:
        self._runtimes, self._cancel_grace_s = runtimes, cancel_grace_s
        self._board = RouteBoard(routes, host, alert)
        self._instances = Instances(runtimes, self._board)
        self._keeping = Keeping(self._instances, self._board)
        self._slots: dict[tuple[str, int], asyncio.Semaphore] = {}

    def is_running(self, tool_id: str, version: str) -> bool:
        """Whether this version runs here, as far as is known without asking it."""
        return self._instances.get((tool_id, version)) is not None

    def is_ready(self, entry: ToolEntry) -> bool:
        """Whether a call needs no start: the tool runs, or its preferred source needs no process."""
        return self.is_running(*key_of(entry)) or (bool(entry.sources) and self._needs_no_process(entry, 0))

    def route(self, tool_id: str) -> ToolRoute | None:
        """The running state of the version that was started last; None if this host never ran the tool."""
        return self._board.route(tool_id)

    async def start(self, entry: ToolEntry, progress: Progress, sources: Collection[int] | None = None) -> ToolRoute:
        """Starts the tool by the first source that works, of all or of those at these indices. Raises NotSent."""
        stops = self._instances.stops(entry.manifest.tool_id)
        failures: dict[int, NotSent] = {}
        for index in self._order(entry) if sources is None else sources:
            try:
                await self._instances.ensure(entry, index, progress, stops)
                break
            except NotSent as failure:
                self._instances.require_not_stopped(entry.manifest.tool_id, stops)
                failures[index] = failure
        else:
            raise _none_worked(entry, failures)
        return self._board.route(entry.manifest.tool_id) or ToolRoute(tool_id=entry.manifest.tool_id)

    async def stop(self, tool_id: str) -> ToolRoute:
        """Ends all versions of the tool. Running and waiting calls fail; a later call starts it again.

        Stopping a tool that does not run is no error.
        """
        self._keeping.note_stop(tool_id)
        await self._instances.stop_tool(tool_id)
        return self._board.route(tool_id) or ToolRoute(tool_id=tool_id)

    @property
    def keeping(self) -> Keeping:
        """For the upkeep of running tools."""
        return self._keeping

    def tool_ids(self) -> tuple[str, ...]:
        """The tools that run or start here, or have run since this host was started."""
        return self._board.tool_ids()

    async def forget(self, tool_id: str) -> None:
        """Stops a removed tool and forgets its route."""
        await self._instances.stop_tool(tool_id)
        self._board.forget(tool_id)

    async def close(self) -> None:
        """Ends everything, in parallel. Afterwards nothing can be started."""
        await self._instances.close()

    async def call(self, dispatch: Dispatch) -> Reply:
        """Makes sure that the tool runs, and sends the request once, to the first source that takes it.

        Raises NotSent (NoSlot; StartFailed if the start takes too long), CallFailed.
        """
        entry, stops = dispatch.entry, self._instances.stops(dispatch.entry.manifest.tool_id)
        async with self._slot(entry, stops, dispatch.slot_timeout_s):
            budget = StartBudget(entry.manifest.tool_id, dispatch.start_timeout_s, dispatch.request.progress)
            failures: dict[int, NotSent] = {}
            for index in self._order(entry):
                try:
                    return await self._started_and_sent(dispatch, index, budget, stops)
                except NotSent as failure:
                    self._instances.require_not_stopped(entry.manifest.tool_id, stops)
                    failures[index] = failure
                if budget.ran_out:
                    break
            raise _none_worked(entry, failures)

    async def call_running(self, dispatch: Dispatch) -> Reply:
        """Like `call`, but starts nothing and waits for no slot. Raises NoSlot, NotSent, CallFailed."""
        entry, stops = dispatch.entry, self._instances.stops(dispatch.entry.manifest.tool_id)
        slots = self._slots_of(entry)
        if slots is not None and slots.locked():
            raise NoSlot(entry.manifest.tool_id, None)
        async with self._slot(entry, stops, None):
            failures: dict[int, NotSent] = {}
            for index in self._order(entry):
                if not await self._is_up(entry, index):
                    raise NoSlot(entry.manifest.tool_id, None)
                instance = await self._instances.ensure(entry, index, dispatch.request.progress, stops)
                if instance.is_out:
                    raise NoSlot(entry.manifest.tool_id, None)
                try:
                    return await self._send(instance, dispatch, stops)
                except NotSent as failure:
                    self._instances.require_not_stopped(entry.manifest.tool_id, stops)
                    failures[index] = failure
            raise _none_worked(entry, failures)

    async def offered(self, entry: ToolEntry, offer: Offer) -> dict[str, JsonValue]:
        """The answer of a tool's server to a request that is not a tool call; starts it if need be. Raises NotSent."""
        index = self._order(entry)[0]
        instance = await self._instances.ensure(entry, index, lambda _: None, self._instances.stops(entry.manifest.tool_id))
        if not isinstance(instance.runtime, Offering):
            raise NotSent(ErrorType.EXECUTOR_NOT_FOUND, f"The tool {entry.manifest.tool_id!r} has no server that offers more.")
        with self._instances.using(instance):
            return await instance.runtime.offered(instance.running, instance.source, offer)

    async def settle_cancelled(self, entry: ToolEntry) -> Aftermath:
        """Looks after a tool whose call was cancelled; ends it if it goes on working and serves no other call."""
        instance = self._instances.get(key_of(entry))
        if instance is not None and isinstance(instance.runtime, PerCall) and instance.runtime.ends_with_call(instance.running):
            return "processes_ended"
        if instance is None or not isinstance(instance.runtime, Mortal):
            return "connection_closed"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._cancel_grace_s):
                while True:
                    if await self._is_idle(instance):
                        return "tool_idle"
                    await asyncio.sleep(_IDLE_LOOK_S)
        if self._instances.serves(instance):
            return "tool_left_busy"
        await self._instances.replace(instance, RunState.STOPPED, "It did not stop working on a cancelled call.")
        return "tool_stopped"

    async def _is_idle(self, instance: Instance) -> bool:
        if not await instance.runtime.is_alive(instance.running):
            return True
        return await instance.runtime.is_idle(instance.running, instance.source)

    async def _started_and_sent(self, dispatch: Dispatch, index: int, budget: StartBudget, stops: int) -> Reply:
        instance = await budget.spend(self._instances.ensure(dispatch.entry, index, budget.tell, stops))
        try:
            return await self._send(instance, dispatch, stops)
        except NotSent as failure:
            self._instances.require_not_stopped(dispatch.entry.manifest.tool_id, stops)
            if not await self._is_useless(instance, failure):
                raise
            await self._instances.replace(instance, RunState.ERROR, failure.message)
        return await self._send(await budget.spend(self._instances.ensure(dispatch.entry, index, budget.tell, stops)), dispatch, stops)

    async def _is_up(self, entry: ToolEntry, index: int) -> bool:
        found = self._instances.get(key_of(entry))
        is_up = found is not None and found.index == index and await found.runtime.is_alive(found.running)
        return is_up or self._needs_no_process(entry, index)

    def _needs_no_process(self, entry: ToolEntry, index: int) -> bool:
        runtime = self._runtimes.get(entry.sources[index].type)
        return runtime is not None and not isinstance(runtime, Mortal | Installing)

    async def _is_useless(self, instance: Instance, failure: NotSent) -> bool:
        """Whether the tool ended before our request, or lives but accepts no connections and serves no other call."""
        if failure.error_type is not ErrorType.UNAVAILABLE or not isinstance(instance.runtime, Mortal):
            return False
        return not self._instances.serves(instance) or not await instance.runtime.is_alive(instance.running)

    async def _send(self, instance: Instance, dispatch: Dispatch, stops: int) -> Reply:
        # Counts the call before the first await, so that the tool does not look unused meanwhile.
        with self._instances.using(instance):
            await dispatch.marks.before_send()
            sent = time.monotonic()
            try:
                self._instances.require_not_stopped(dispatch.entry.manifest.tool_id, stops)
                async with self._instances.until_stopped(instance):
                    output = await instance.runtime.call(instance.running, instance.source, dispatch.request)
            except NotSent as failure:
                await dispatch.marks.after_not_sent()
                # Its message becomes the state of the tool, if that is replaced.
                await failure.hide_secrets(dispatch.entry.manifest.input_schema, dispatch.request.params)
                raise
            except CallFailed as failure:
                if failure.outcome == "unknown" and failure.error_type is ErrorType.EXECUTION_ERROR:
                    is_stopped = self._instances.stops(dispatch.entry.manifest.tool_id) != stops
                    if not (is_stopped and instance.is_retired):  # its process goes on until the call is over
                        await self._instances.explain(instance, failure)
                    if is_stopped:
                        failure.explain(reason="stopped")
                raise
            self._board.answered(dispatch.entry.manifest.tool_id)
            return Reply(output, instance.index, time.monotonic() - sent)

    def _order(self, entry: ToolEntry) -> list[int]:
        """The running source first, then all others in the registry's order."""
        up = self._instances.get(key_of(entry))
        return sorted(range(len(entry.sources)), key=lambda index: up is None or index != up.index)

    def _slots_of(self, entry: ToolEntry) -> asyncio.Semaphore | None:
        limit = entry.manifest.concurrency
        return None if limit is None else self._slots.setdefault((entry.manifest.tool_id, limit), asyncio.Semaphore(limit))

    @asynccontextmanager
    async def _slot(self, entry: ToolEntry, stops: int, timeout_s: float | None) -> AsyncGenerator[None, None]:
        """Holds one of the tool's own slots, if it has a limit.

        Raises NoSlot after `timeout_s` seconds, NotSent if the tool was stopped meanwhile.
        """
        slots = self._slots_of(entry)
        if slots is None:
            yield
            return
        try:
            async with asyncio.timeout(timeout_s):
                await slots.acquire()
        except TimeoutError:
            # Before NoSlot, which is retried: a retry would start the stopped tool.
            self._instances.require_not_stopped(entry.manifest.tool_id, stops)
            raise NoSlot(entry.manifest.tool_id, timeout_s or 0.0) from None
        try:
            self._instances.require_not_stopped(entry.manifest.tool_id, stops)
            yield
        finally:
            slots.release()


def _none_worked(entry: ToolEntry, failures: Mapping[int, NotSent]) -> NotSent:
    """One failure that reports all. `failures` are by source index, in the order of trying."""
    if not failures:
        return NotSent(ErrorType.EXECUTOR_NOT_FOUND, f"The tool {entry.manifest.tool_id!r} has no source to run from.")
    first, *others = failures.values()
    if not others:
        return first
    told = "; ".join(failure.message for failure in failures.values())
    message = f"None of the {len(failures)} sources of {entry.manifest.tool_id!r} could be used: {told}"
    sources: list[JsonValue] = [
        {"index": at, "source": entry.sources[at].type, "type": one.error_type.value, "message": one.message, "details": one.details}
        for at, one in failures.items()
    ]
    return NotSent(first.error_type, message, {"sources": sources})
