"""Rounds of maintenance over running tools."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog

from engine.runtimes.running.keeping import Keeping, Kept
from engine.runtimes.runtime import Vitals
from engine.store.hosts import HostTable
from engine.store.sessions import SessionUnreadableError
from engine.upkeep.tools.hot_tools import HotTools
from engine.upkeep.tools.scheduling import KeepingLimits, Modes, idle_s_of
from toolagent.contracts.manifest import SchedulingMode
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.maintenance import HostRound, ServiceRound

Round: TypeAlias = Callable[[], Awaitable[tuple[str, ...]]]
"""Returns what it has done, a few words each."""

_CHECK_S = 5.0
_CHECKS_AT_ONCE = 8
_TURN_S = 10.0
"""A turn waits so long for its round. Runs of `Maintain` do not overlap: all hosts wait for the longest turn."""

_ROUND_S = 180.0
"""The time limit of a round, so that a stuck one does not block later ones."""

_LATE = f"Its round takes longer than {_TURN_S:g} s, and goes on."

_FAILURES = 2
"""Failed checks in a row: a tool may miss one because the machine is busy."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def _no_containers() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class HostParts:
    """Dependencies of the rounds of one host."""

    host: str
    keeping: Keeping
    modes: Modes
    hot: HotTools
    limits: KeepingLimits
    tools_of_sessions: Callable[[], Awaitable[frozenset[str]]]
    destroy_unused: Callable[[], Awaitable[Mapping[str, str]]] = _no_containers
    """Destroys containers that serve no tool. Returns those that could not be destroyed, and why."""


@dataclass(slots=True)
class _Done:
    began: float = field(default_factory=time.monotonic)
    checked: int = 0
    unhealthy: list[str] = field(default_factory=list[str])
    stopped: list[str] = field(default_factory=list[str])
    evicted: list[str] = field(default_factory=list[str])


class HostMaintenance:
    """Maintains the tools of one host."""

    def __init__(self, parts: HostParts) -> None:
        self._parts = parts
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._under_way: asyncio.Task[HostRound] | None = None
        self._is_closed = False

    async def turn(self) -> HostRound:
        """A round. If it takes long, it goes on, `failed` says so, and no other one begins meanwhile. Raises StoreUnavailableError."""
        if self._is_closed:
            return self._failed("The host stops.")
        if self._under_way is not None:
            return self._failed(_LATE)
        task = self._under_way = asyncio.create_task(self._limited(), name="round of maintenance")
        task.add_done_callback(self._ended)
        try:
            await asyncio.wait((task,), timeout=_TURN_S)
        except asyncio.CancelledError:
            task.add_done_callback(_tell_of_late)
            raise
        if not task.done():
            task.add_done_callback(_tell_of_late)
            return self._failed(_LATE)
        return self._failed("The host stops.") if task.cancelled() else task.result()

    def _ended(self, task: asyncio.Task[HostRound]) -> None:
        self._under_way = None
        if not task.cancelled():
            task.exception()  # a turn that was cancelled does not ask for it

    def _failed(self, why: str) -> HostRound:
        return HostRound(host=self._parts.host, failed=why)

    async def _limited(self) -> HostRound:
        limit = asyncio.timeout(_ROUND_S)
        try:
            async with limit:
                return await self.round()
        except TimeoutError:
            if not limit.expired():
                raise
            return self._failed(f"Its round took longer than {_ROUND_S:g} s, and was ended.")

    async def round(self) -> HostRound:
        """Checks running tools, ends unhealthy and unused ones, starts hot ones. Raises StoreUnavailableError.

        A tool in use is neither checked nor ended.
        """
        parts, done = self._parts, _Done()
        await parts.modes.renew()
        held = await self._held()
        found = parts.keeping.all()
        vitals = await self._checked(found, done)
        if held is not None:
            await self._end_unused(found, vitals, held, done)
            await self._evict(vitals, held, done)
        running = {tool_id for kept in parts.keeping.all() for tool_id in kept.tool_ids}
        room = parts.limits.most_hot - len(self._hot())
        started = await parts.hot.start(parts.modes.hot, running, room, parts.modes.number)
        for name, reason in (await parts.destroy_unused()).items():
            _log.warning("unused_container_not_ended", container=name, reason=reason)
        return HostRound(
            host=parts.host,
            checked=done.checked,
            unhealthy=tuple(done.unhealthy),
            stopped=tuple(done.stopped),
            evicted=tuple(done.evicted),
            started=started,
        )

    async def close(self) -> None:
        self._is_closed = True
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.gather(self._under_way, return_exceptions=True)
        await self._parts.hot.close()

    async def _held(self) -> frozenset[str] | None:
        """The tools of sessions. None: a session is unreadable and may hold any tool, so no unused tool is ended."""
        try:
            return await self._parts.tools_of_sessions()
        except SessionUnreadableError as error:
            _log.warning("tools_kept_up", session_id=error.session_id, reason=str(error))
            return None

    async def _checked(self, found: Iterable[Kept], done: _Done) -> dict[Kept, Vitals]:
        """The vitals of tools that answered. Unhealthy ones are ended."""
        vitals: dict[Kept, Vitals] = {}

        async def check(kept: Kept) -> None:
            async with self._checks:
                if self._parts.keeping.is_in_use(kept):
                    return
                done.checked += 1
                answer = await kept.vitals(_CHECK_S)
            if answer.is_well:
                self._parts.keeping.healthy(kept)
                vitals[kept] = answer
            elif kept.failed_checks >= _FAILURES and await self._given_up(kept, answer.said):
                done.unhealthy.extend(kept.tool_ids)

        await _with_each(check, found)
        return vitals

    async def _given_up(self, kept: Kept, said: str) -> bool:
        try:
            given_up = await self._parts.keeping.give_up(kept, f"It is not healthy: {said}.")
        except StoreUnavailableError as error:  # its process has ended nevertheless
            _log.warning("health_not_noted", tools=kept.tool_ids, reason=str(error))
            return True
        if given_up:
            _log.warning("tool_unhealthy", tools=kept.tool_ids, said=said, then="it was ended, and the next call starts it")
        return given_up

    async def _end_unused(self, found: Iterable[Kept], vitals: Mapping[Kept, Vitals], held: frozenset[str], done: _Done) -> None:
        async def end(kept: Kept) -> None:
            idle_s = idle_s_of(self._parts.modes.of(kept), kept, self._parts.limits)
            if idle_s is None or kept.unused_s <= idle_s or not self._is_free(kept, vitals, held, done.began):
                return
            if await self._retired(kept, f"it was not called for {idle_s:g} s"):
                done.stopped.extend(kept.tool_ids)

        await _with_each(end, found)

    async def _evict(self, vitals: Mapping[Kept, Vitals], held: frozenset[str], done: _Done) -> None:
        """Ends hot tools while there are too many. A tool in use stays."""
        hot = sorted(self._hot(), key=self._parts.limits.leaves_first)
        surplus = len(hot) - self._parts.limits.most_hot
        for kept in hot:
            if surplus <= 0:
                return
            if self._is_free(kept, vitals, held, done.began) and await self._retired(kept, "there are too many hot tools"):
                done.evicted.extend(kept.tool_ids)
                surplus -= 1

    def _hot(self) -> list[Kept]:
        """The hot tools that count: a mere connection takes no place."""
        modes = self._parts.modes
        return [kept for kept in self._parts.keeping.all() if kept.has_process and modes.of(kept) is SchedulingMode.HOT]

    def _is_free(self, kept: Kept, vitals: Mapping[Kept, Vitals], held: frozenset[str], began: float) -> bool:
        """Whether neither the tool nor a session says that it is in use. A tool that was not asked in this round is not free.

        Nor is one that was used since the round `began`: that call may have opened a session.
        """
        answer = vitals.get(kept)
        return answer is not None and not answer.holds and kept.used < began and not held.intersection(kept.tool_ids)

    async def _retired(self, kept: Kept, why: str) -> bool:
        try:
            retired = await self._parts.keeping.retire(kept)
        except StoreUnavailableError as error:  # its process has ended nevertheless
            _log.warning("end_of_tool_not_noted", tools=kept.tool_ids, reason=str(error))
            return True
        if retired:
            _log.info("tool_ended", tools=kept.tool_ids, reason=why)
        return retired


def _tell_of_late(task: asyncio.Task[HostRound]) -> None:
    """The account of `Maintain` does not have its result."""
    if task.cancelled():
        return
    if (error := task.exception()) is not None:
        _log.warning("round_failed", exc_info=error)
    else:
        _log.info("long_round_ended", **task.result().model_dump(exclude_defaults=True))


async def _with_each(work: Callable[[Kept], Awaitable[None]], found: Iterable[Kept]) -> None:
    """For all tools at once. A failure of one does not affect the others."""

    async def one(kept: Kept) -> None:
        try:
            await work(kept)
        except Exception:  # noqa: BLE001 - the round goes on
            _log.exception("tool_not_looked_after", tools=kept.tool_ids, then="the next round tries it again")

    await asyncio.gather(*map(one, found))


class ServiceMaintenance:
    """Rounds that any host may do for the whole service."""

    def __init__(self, hosts: HostTable, rounds: Sequence[Round] = ()) -> None:
        self._hosts, self._rounds = hosts, rounds

    async def live_hosts(self) -> tuple[str, ...]:
        """Ids in order. Raises StoreUnavailableError."""
        return tuple(await self._hosts.list_alive())

    async def round(self) -> ServiceRound:
        """Runs all rounds one after another. Logs each failure, and raises the first one at the end."""
        done, failed = list[str](), list[Exception]()
        for one in self._rounds:
            try:
                done += await one()
            except Exception as error:  # noqa: BLE001 - the other rounds still run
                _log.warning("round_failed", exc_info=error)
                failed.append(error)
        if failed:
            raise failed[0]
        return ServiceRound(done=tuple(done))


@asynccontextmanager
async def begun_maintenance(maintenance: HostMaintenance) -> AsyncGenerator[None]:
    """Begins a first round at once, so that hot tools do not wait for the schedule. Ends starts with the block."""
    first = asyncio.create_task(_first(maintenance), name="first round of maintenance")
    try:
        yield
    finally:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await maintenance.close()


async def _first(maintenance: HostMaintenance) -> None:
    try:
        await maintenance.turn()
    except StoreUnavailableError as error:
        _log.info("first_round_not_made", reason=str(error), then="the next one comes by the schedule")
    except Exception as error:  # noqa: BLE001 - nothing waits for it
        _log.warning("round_failed", exc_info=error)
