"""The MCP server on a port of its own."""

import json
from dataclasses import replace

import httpx

from api.app import create_app, create_mcp_app, running_mcp
from tests.api.conftest import BASE_URL, House
from tests.api.mcp_client import NEW, Caller


async def test_the_mcp_server_of_its_own_port_is_not_at_the_api(stocked: House) -> None:
    elsewhere = replace(stocked.dependencies, mcp=replace(stocked.dependencies.mcp, own_port=8123), api_key="secret")
    app = create_app(elsewhere)
    async with running_mcp(app):
        for at, status in ((app, 404), (create_mcp_app(app), 200)):
            async with httpx.AsyncClient(transport=httpx.ASGITransport(at), base_url=BASE_URL) as http:
                message, headers = Caller(http, NEW).request("tools/list")
                key = {"Authorization": "Bearer secret"}
                sent = {**Caller(http, NEW).headers, **headers}
                answer = await http.post("/mcp", content=json.dumps(message), headers={**sent, **key})
                assert (answer.status_code, "8123" in answer.text) == (status, status == 404)
                assert (await http.post("/mcp", content=json.dumps(message), headers=sent)).status_code == 401
