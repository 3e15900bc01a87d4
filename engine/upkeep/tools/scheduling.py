"""Scheduling of tools on a host: which are to run, and which may be ended."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from engine.runtimes.running.keeping import Kept
from engine.store.catalog_state import CatalogState
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from toolagent.contracts.manifest import SchedulingMode

Leaving: TypeAlias = Callable[[Kept], float]

EVICTION: Mapping[str, Leaving] = {"lru": lambda kept: kept.used}
"""Policies of eviction, by name."""


@dataclass(frozen=True, slots=True)
class KeepingLimits:
    """Times are in seconds."""

    cold_idle_s: float
    most_hot: int
    leaves_first: Leaving
    """Orders surplus hot tools: the smallest goes first."""
    stateless_idle_s: float = 1.0
    """Not 0, because the call that started the tool may not have begun yet."""


class Modes:
    """The scheduling modes of tools, read when the catalog has changed."""

    def __init__(self, tools: ToolTable, state: CatalogState) -> None:
        self._tools, self._state = tools, state
        self.number = -1
        """The number of the catalog at the last read."""
        self._found: Mapping[str, SchedulingMode] = {}

    async def renew(self) -> None:
        """Raises StoreUnavailableError."""
        number = await self._state.number()
        if number != self.number:
            self._found = await self._tools.scheduling_modes()
            self.number = number

    @property
    def hot(self) -> frozenset[str]:
        return frozenset(tool_id for tool_id, mode in self._found.items() if mode is SchedulingMode.HOT)

    def of(self, kept: Kept) -> SchedulingMode:
        """Of several tools in one process, the mode that keeps it longest."""
        modes = {self._found.get(tool_id, SchedulingMode.COLD) for tool_id in kept.tool_ids}
        return next(mode for mode in SchedulingMode if mode in modes)


def idle_s_of(mode: SchedulingMode, kept: Kept, limits: KeepingLimits) -> float | None:
    """How long a tool may be unused; None: as long as there is room."""
    match mode:
        case SchedulingMode.HOT:
            return None
        case SchedulingMode.COLD:
            return min(limits.cold_idle_s, kept.ttl_s)
        case SchedulingMode.STATELESS:
            return limits.stateless_idle_s


def tools_of_sessions(sessions: SessionTable, host: str) -> Callable[[], Awaitable[frozenset[str]]]:
    """The tools of groups with sessions that live here, or may still be launched here."""

    async def found() -> frozenset[str]:
        """Raises StoreUnavailableError, SessionUnreadableError."""
        living = await sessions.living()
        groups = [request.group for request, view in living if view.host in {None, host}]
        return frozenset(tool_id for group in groups for tool_id in group.all_tool_ids)

    return found
