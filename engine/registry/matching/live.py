"""The ranking of this process, renewed before each question if the catalog changed."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from engine.registry.matching.meanings import meanings_here
from engine.registry.matching.ranking import Ranking
from engine.store.catalog_state import CatalogState
from engine.store.tools import ToolTable
from toolagent.contracts.manifest import ToolManifest

T = TypeVar("T")

_NEVER = -1


class LiveRanking:
    """The first question builds the ranking; concurrent ones wait. All work runs in one thread, to keep the event loop free."""

    def __init__(self, tools: ToolTable, state: CatalogState) -> None:
        self._tools, self._state = tools, state
        self._thread = ThreadPoolExecutor(1, "matching")
        self._ranking: Ranking | None = None
        self._number = _NEVER
        self._texts: Mapping[str, bytes] = {}
        self._renewal: asyncio.Task[Ranking] | None = None
        self._one_renewal = asyncio.Lock()

    async def ask(self, question: Callable[[Ranking], T]) -> T:
        """Answer a question in the thread. Raises StoreUnavailableError."""
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renewed(), name="renew the ranking")
            self._renewal.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded, because other callers wait for the same renewal.
        ranking = await asyncio.shield(self._renewal)
        return await asyncio.get_running_loop().run_in_executor(self._thread, question, ranking)

    async def _renewed(self) -> Ranking:
        async with self._one_renewal:
            # Later questions need a renewal that reads later.
            self._renewal = None
            number = await self._state.number()
            if self._ranking is None or number != self._number:
                texts = await self._tools.active_manifests()
                before, self._ranking = self._ranking, None
                # A failure may leave a half-changed ranking: then the next renewal starts over.
                loop = asyncio.get_running_loop()
                ranking, self._texts = await loop.run_in_executor(self._thread, _changed, before, self._texts, texts)
                self._ranking, self._number = ranking, number
                return ranking
            return self._ranking


def _changed(before: Ranking | None, known: Mapping[str, bytes], texts: Sequence[tuple[str, str]]) -> tuple[Ranking, dict[str, bytes]]:
    """Update the ranking with manifests whose hash changed, or build it from all."""
    ranking = before or Ranking(meanings_here())
    known = known if before else {}
    now = {tool_id: hashlib.blake2b(text.encode(), digest_size=16).digest() for tool_id, text in texts}
    changed = [ToolManifest.model_validate_json(text) for tool_id, text in texts if known.get(tool_id) != now[tool_id]]
    gone = known.keys() - now.keys()
    if gone or changed:
        ranking.change(gone, changed)
    return ranking, now
