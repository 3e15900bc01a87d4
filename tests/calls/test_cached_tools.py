"""Tools that are cached for calls, until the catalog changes."""

import asyncio

from engine.calls.cached_tools import CachedTools, RenewedTools
from engine.calls.lookup import entry_in
from engine.registry.registry import ToolRegistry
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import RemoteSource

SOURCE = RemoteSource(remote_url="http://127.0.0.1:1/")


async def test_what_another_process_changed_is_seen_by_the_next_batch(database: Database) -> None:
    others = ToolRegistry(ToolTable(database), RouteTable(database))
    cached = CachedTools(ToolRegistry(ToolTable(database), RouteTable(database)), CatalogState(database))
    for version in ("1.0.0", "1.1.0"):
        await others.register(ToolManifest(tool_id="t", name="T", version=version), (SOURCE,))

    async def found() -> tuple[str, ToolStatus]:
        await cached.renew()
        entry = await cached.find("t", None)
        assert isinstance(entry, ToolEntry)
        return entry.manifest.version, entry.manifest.status

    assert await found() == ("1.1.0", ToolStatus.ACTIVE)
    first = await cached.find("t", None)
    assert await cached.find("t", None) is first
    await others.activate("t", "1.0.0")
    assert await found() == ("1.0.0", ToolStatus.ACTIVE)
    await others.deactivate("t", "1.0.0")
    assert await found() == ("1.0.0", ToolStatus.INACTIVE)
    await others.destroy("t")
    await cached.renew()
    assert not isinstance(await cached.find("t", None), ToolEntry)


async def test_an_admission_sees_the_catalog_of_its_time_and_later_steps_of_a_second_ago(database: Database) -> None:
    others = ToolRegistry(ToolTable(database), RouteTable(database))
    cached = CachedTools(ToolRegistry(ToolTable(database), RouteTable(database)), CatalogState(database))
    at_once, recent = RenewedTools(cached), RenewedTools(cached, 60.0)
    await others.register(ToolManifest(tool_id="t", name="T", version="1.0.0"), (SOURCE,))
    first = await entry_in(recent, "t", "1.0.0")
    assert first is not None
    await others.destroy("t")
    assert await entry_in(recent, "t", "1.0.0") is first
    assert await asyncio.gather(*(entry_in(at_once, "t", "1.0.0") for _ in range(3))) == [None] * 3
    assert await entry_in(recent, "t", "1.0.0") is None
    assert await entry_in(at_once, "t", "no range") is None


class _BusyAtFirst(CatalogState):
    """A database whose first answer is slow."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.is_busy, self.has_read, self.is_free = True, asyncio.Event(), asyncio.Event()

    def number_at_once(self) -> int | None:
        return None if self.is_busy else super().number_at_once()

    async def number(self) -> int:
        number = await super().number()
        self.has_read.set()
        await self.is_free.wait()
        return number


async def test_a_renewal_that_took_long_does_not_undo_a_later_one(database: Database) -> None:
    registry = ToolRegistry(ToolTable(database), RouteTable(database))
    state = _BusyAtFirst(database)
    cached = CachedTools(registry, state)
    slow = asyncio.create_task(cached.renew())
    await state.has_read.wait()
    await registry.register(ToolManifest(tool_id="t", name="T", version="1.0.0"), (SOURCE,))
    state.is_busy = False
    await cached.renew()
    number = cached.number
    state.is_free.set()
    await slow
    assert cached.number == number > 0
