"""Looks at servers that do not answer."""

import asyncio
from typing import cast

import pytest

from engine.mcp_servers import looking
from engine.mcp_servers.looking import ServerLooks
from engine.runtimes.mcp.listing import Listing
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.core.failures import McpServersBusyError

SPEC = McpServerSpec(url="https://example.com/mcp")


class Servers:
    """Only the server `near` answers."""

    async def listed(self, tool: ToolManifest, *_: object) -> Listing:
        if tool.name != "near":
            await asyncio.Event().wait()
        return Listing()


async def test_one_slow_server_keeps_no_other_out_and_many_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "_PATIENCE_S", 0.05)
    looks = ServerLooks(cast("RemoteMcpRuntime", Servers()), None)
    asked = [asyncio.create_task(looks.look("slow", SPEC)) for _ in range(20)]
    await asyncio.sleep(0)
    assert [*(await looks.look("near", SPEC)).found.by_id] == []
    asked += [asyncio.create_task(looks.look(f"slow{number}", SPEC)) for number in range(20)]
    await asyncio.sleep(0)
    with pytest.raises(McpServersBusyError):
        await looks.look("near", SPEC)
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    assert [*(await looks.look("near", SPEC)).found.by_id] == []
