"""The files that a killed process has left of MCP servers are removed, and nothing else."""

import asyncio
from pathlib import Path

from engine.mcp_servers.strays import Strays
from engine.registry.formats.server_keys import with_keys_of_request
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.mcp_logins import McpLoginRow, McpLoginRows
from engine.store.mcp_servers import McpServerRows
from engine.store.secret_mentions import SecretMentions
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.mcp_servers import McpServerSpec
from workers.state.secrets import SecretSource

URL = "https://far.example/mcp"


async def test_what_is_kept_for_no_server_goes_at_the_second_look(database: Database, tmp_path: Path) -> None:
    keys, logins, rows = SecretSource({}, tmp_path / "secrets"), McpLoginRows(database), McpServerRows(database)
    spec = McpServerSpec(url=URL, headers={"Authorization": "Bearer the-long-key"})
    there, killed, named = [
        await asyncio.to_thread(with_keys_of_request, name, spec, keys) for name in ("there", "killed", "named_elsewhere")
    ]
    await asyncio.to_thread(keys.keep, "MCP_OF_THE_OPERATOR", "his-own-key")
    await rows.bring_in({"there": there}, ())
    group = ToolGroup(group_id="one", name="One", description=named.headers["Authorization"])
    await GroupTable(database).replace([group])
    for name in ("there", "killed"):
        assert await logins.keep(name, URL, "tokens", is_new=True)
    before = await asyncio.to_thread(keys.names)
    strays = Strays(logins, SecretMentions(database), keys, every_s=0)
    assert (await strays.round(), await asyncio.to_thread(keys.names)) == ((), before)
    assert len(await strays.round()) == 2
    (gone,) = before - await asyncio.to_thread(keys.names)
    assert f"secret:{gone}" == killed.headers["Authorization"]
    assert (await logins.get("killed", URL), await logins.get("there", URL)) == (None, McpLoginRow("there", URL, 1, "tokens"))
    assert await strays.round() == ()
