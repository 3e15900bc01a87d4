"""Which addresses MCP servers, and the servers of their logins, may have."""

from ipaddress import ip_address

import httpx
import pytest

from engine.runtimes.failures import NotSent
from workers.destinations import server_judge
from workers.settings.front import FrontSettings, McpSettings
from workers.settings.hosts import CallSettings
from workers.settings.whole import Settings


@pytest.mark.parametrize("place", ["127.0.0.1:8123", "localhost:8123", "[::ffff:127.0.0.1]:8124", "127.0.0.2:8124"])
async def test_nothing_of_a_server_leads_to_the_service_itself(place: str) -> None:
    allowed = CallSettings(mcp_allow=("127.0.0.0/8", "localhost", "::1"))
    judge = server_judge(Settings(front=FrontSettings(fastapi_port=8123), mcp=McpSettings(mcp_port=8124), calls=allowed))
    with pytest.raises(NotSent, match="the service itself"):
        await judge.of(httpx.URL(f"http://{place}/tools/far_act/versions/1.1.0/activate"))
    assert await judge.of(httpx.URL("http://127.0.0.1:8125/")) == [ip_address("127.0.0.1")]
