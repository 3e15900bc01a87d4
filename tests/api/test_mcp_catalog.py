"""The tools as MCP clients see them: how often they are loaded."""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import cast

from api.mcp.catalog import Selection, ToolCatalog
from api.ports import Groups
from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.tools import ToolTable
from tests.api.conftest import ECHO, House
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolGroup


class CountedRegistry(ToolRegistry):
    loads = 0

    async def list_entries(self) -> tuple[ToolEntry, ...]:
        self.loads += 1
        return await super().list_entries()


async def test_names_that_are_not_there_load_nothing_while_the_catalog_changes(stocked: House, database: Database) -> None:
    registry, numbers = CountedRegistry(ToolTable(database), stocked.routes), count()

    async def number() -> int:
        return next(numbers)

    catalog = ToolCatalog(registry, stocked.groups, number)
    found = await asyncio.gather(*(catalog.find(name) for name in ("nothing", "no__thing", "none_0123abcd", "\x00") * 5))
    assert (set(found), registry.loads) == ({None}, 1)


async def test_another_name_of_a_tool_finds_it_and_is_not_listed(stocked: House, database: Database) -> None:
    async def number() -> int:
        return 1

    registry = ToolRegistry(ToolTable(database), stocked.routes, {"other_echo": ECHO.tool_id})
    catalog = ToolCatalog(registry, stocked.groups, number)
    found, (tools, _) = await catalog.find("other_echo"), await catalog.page(Selection(), None)
    assert found is not None
    assert (found.manifest.tool_id, "other_echo" in [tool["name"] for tool in tools]) == (ECHO.tool_id, False)


async def test_a_page_is_of_one_state_of_the_catalog(stocked: House, database: Database) -> None:
    registry, numbers = CountedRegistry(ToolTable(database), stocked.routes), count()

    async def number() -> int:
        return next(numbers)

    class ChangingGroups:
        """Groups during whose look-up a tool is deactivated and another request loads the catalog."""

        async def get(self, group_id: str) -> ToolGroup:
            await registry.deactivate(ECHO.tool_id, ECHO.version)
            await catalog.now(0.0)
            return ToolGroup(group_id=group_id, name="Group", tool_ids=(ECHO.tool_id,))

    catalog = ToolCatalog(registry, cast("Groups", ChangingGroups()), number)
    tools, _ = await catalog.page(Selection(group="group"), None)
    assert [tool["name"] for tool in tools] == [ECHO.tool_id]


async def test_those_who_ask_at_once_share_one_load_and_one_mapping(stocked: House, database: Database) -> None:
    registry, numbers = CountedRegistry(ToolTable(database), stocked.routes), count()

    async def number() -> int:
        return next(numbers)

    catalog = ToolCatalog(registry, stocked.groups, number)
    snapshots = await asyncio.gather(*(catalog.now(0.0) for _ in range(5)))
    versions: list[Mapping[str, str]] = [snapshot.versions for snapshot in snapshots]
    # The first has begun before the others asked: they share the next one.
    assert registry.loads == 2
    assert all(one is versions[1] for one in versions[1:])
