"""What keeps calls from a version: it is under repair, or has inputs that it is not asked any more."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

from engine.calls.cached_tools import CachedTools
from engine.store.production_repairs import ProductionRepairs
from engine.store.quarantine import QuarantineTable
from toolagent_service.contracts.repairs import Meanwhile


@dataclass(frozen=True, slots=True)
class Trouble:
    """`task_id` is the repair's, if one is under way; `quarantined` as `engine.store.quarantine.input_of`."""

    task_id: str | None = None
    meanwhile: Meanwhile = Meanwhile.SERVE
    previous: str | None = None
    quarantined: frozenset[str] = frozenset()


class Troubles(Protocol):
    async def of(self, tool_id: str, version: str) -> Trouble | None:
        """None: nothing, as nearly always. Raises StoreUnavailableError."""
        ...


class NoTroubles:
    """Where tools are neither repaired nor quarantined."""

    async def of(self, tool_id: str, version: str) -> Trouble | None:  # noqa: ARG002 - as the protocol
        return None


class CachedTroubles:
    """All there are (few), as of when `tools` were renewed last: the database counts their changes with those of the catalog."""

    def __init__(self, repairs: ProductionRepairs, quarantine: QuarantineTable, tools: CachedTools) -> None:
        self._repairs, self._quarantine, self._tools = repairs, quarantine, tools
        self._number: int | None = None
        self._found: dict[tuple[str, str], Trouble] = {}
        self._one_reading = asyncio.Lock()

    async def of(self, tool_id: str, version: str) -> Trouble | None:
        if self._number != self._tools.number:
            async with self._one_reading:
                if self._number != (number := self._tools.number):
                    self._found = await self._read()
                    # Below 0 nobody has renewed them yet.
                    self._number = number if number >= 0 else None
        return self._found.get((tool_id, version))

    async def _read(self) -> dict[tuple[str, str], Trouble]:
        inputs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for tool_id, version, given in await self._quarantine.all_inputs():
            inputs[tool_id, version].add(given)
        repairs = {(one.tool_id, one.version): one for one in await self._repairs.under_way()}
        found = dict[tuple[str, str], Trouble]()
        for key in {*inputs, *repairs}:
            quarantined = frozenset(inputs[key])
            repair = repairs.get(key)
            found[key] = (
                Trouble(repair.task_id, repair.meanwhile, repair.previous, quarantined) if repair else Trouble(quarantined=quarantined)
            )
        return found
