"""The requests of a login at an MCP server, and the answers that are accepted."""

from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest

from engine.runtimes.failures import NotSent
from engine.store.database import Database
from engine.store.mcp_logins import McpLoginRow, McpLoginRows
from tests.api.conftest import House, logins_at
from tests.api.test_mcp_logins import begun, logged_in
from tests.mcp_servers.authorized import Authorized, authorized
from toolagent.contracts.sources import McpSource


@pytest.fixture
def site() -> Generator[Authorized]:
    with authorized() as site:
        yield site


async def test_the_first_request_of_a_login_has_the_headers_that_the_server_is_given(house: House, site: Authorized) -> None:
    site.routed_by = "x-tenant"
    assert (await begun(house, site, headers={"X-Tenant": "blue"})).login_required
    assert (await house.http.post("/mcp_servers/far/login")).status_code == 200


async def test_what_a_server_asks_for_besides_is_bounded(house: House, site: Authorized, database: Database, tmp_path: Path) -> None:
    await logged_in(house, site)
    rows, source = McpLoginRows(database), McpSource(tool_name="-", url=site.url, server="far")
    for scope, kept in (("write admin", "write admin"), ("s" * 2_001, None)):
        await rows.keep("far", site.url, (await _row(rows, site)).sealed or "")
        login = logins_at(database, tmp_path).of(source)
        refusal = httpx2.Response(403, headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'})
        with pytest.raises(NotSent, match="It wants more scopes"):
            await login.renewed(await login.token(), refusal)
        assert (await _row(rows, site)).scope == kept


async def test_a_token_that_somebody_has_renewed_meanwhile_is_not_renewed_again(
    house: House, site: Authorized, database: Database, tmp_path: Path
) -> None:
    await logged_in(house, site)
    source, logins = McpSource(tool_name="-", url=site.url, server="far"), logins_at(database, tmp_path)
    _, old = await logins.read(source)
    _, renewed = await logins.renewed(source, old)
    for late in (logins, logins_at(database, tmp_path)):
        assert await late.renewed(source, old) == await logins.read(source)
    assert (renewed.tokens != old.tokens, site.doorman.refreshed) == (True, 1)


async def _row(rows: McpLoginRows, site: Authorized) -> McpLoginRow:
    row = await rows.get("far", site.url)
    assert row is not None
    return row
