"""The table of logins at MCP servers, on both kinds of database."""

import asyncio
from datetime import UTC, datetime, timedelta

from engine.store.database import Database
from engine.store.mcp_logins import McpLoginRow, McpLoginRows, PendingLogin
from engine.store.mcp_servers import McpServerRows
from toolagent.contracts.mcp_servers import McpServer, McpServerSpec

URL = "https://far.example/mcp"
FAR = McpServer(name="far", spec=McpServerSpec(url=URL), registered_at=datetime(2026, 11, 26, tzinfo=UTC))
LATER = datetime.now(UTC) + timedelta(hours=1)


def pending(state: str) -> PendingLogin:
    return PendingLogin("far", URL, state, f"https://auth.example/?state={state}", LATER, f"sealed {state}")


async def test_a_login_waits_is_taken_once_and_is_kept(database: Database) -> None:
    rows, servers = McpLoginRows(database), McpServerRows(database)
    assert not await rows.begin(pending("a"))
    await servers.add_unlisted(FAR)
    assert await rows.begin(pending("a"))
    waiting = {"login_required": True, "login_url": "https://auth.example/?state=a", "login_until": LATER}
    assert await servers.list_all() == (FAR.model_copy(update=waiting),)
    assert await rows.begin(pending("b"))
    assert await rows.take("a") is None
    taken = await asyncio.gather(*(rows.take("b") for _ in range(5)))
    assert [one for one in taken if one is not None] == [pending("b")]
    assert await rows.keep("far", URL, "tokens")
    assert await rows.get("far", URL) == McpLoginRow("far", URL, 1, "tokens")
    assert await rows.get("far", "https://other.example/mcp") is None
    assert await servers.get("far") == FAR
    await servers.remove("far")
    assert (await rows.get("far", URL), await rows.keep("far", URL, "tokens")) == (None, False)


async def test_one_renews_and_what_comes_late_changes_nothing(database: Database) -> None:
    rows, servers = McpLoginRows(database), McpServerRows(database)
    await servers.add_unlisted(FAR)
    await rows.keep("far", URL, "old")
    row = await rows.get("far", URL)
    assert row is not None
    assert sorted(await asyncio.gather(*(rows.lease(row, 60) for _ in range(5)))) == [False, False, False, False, True]
    await rows.give_back(row)
    assert await rows.lease(row, -1)
    assert await rows.lease(row, 60)
    assert await rows.renew(row, "new")
    assert not await rows.renew(row, "late")
    await rows.drop(row)
    await rows.require("far", URL, None, row.number)
    assert await rows.get("far", URL) == McpLoginRow("far", URL, 2, "new")
    assert await servers.get("far") == FAR


async def test_what_a_server_asks_for_besides_stays_until_the_next_login_and_another_url_has_nothing(database: Database) -> None:
    rows, servers = McpLoginRows(database), McpServerRows(database)
    await servers.add_unlisted(FAR)
    await rows.keep("far", URL, "tokens")
    await rows.require("far", URL, "write", 1)
    assert await rows.get("far", URL) == McpLoginRow("far", URL, 1, "tokens", "write")
    other = "https://other.example/mcp"
    await rows.require("far", other, None, 0)
    assert not await rows.keep("far", other, "tokens of a registration that is gone")
    assert await rows.get("far", URL) == McpLoginRow("far", URL, 1, "tokens", "write")
    await servers.remove("far")
    await servers.add_unlisted(FAR.model_copy(update={"spec": McpServerSpec(url=other)}))
    await rows.require("far", other, None, 0)
    assert await rows.get("far", URL) is None
    await rows.keep("near", URL, "tokens", is_new=True)
    await rows.forget_unregistered("near")
    await rows.forget_unregistered("far")
    found = [await rows.get(name, url) for name, url in (("near", URL), ("far", "https://other.example/mcp"))]
    assert found == [None, McpLoginRow("far", "https://other.example/mcp")]
