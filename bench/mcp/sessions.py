"""What sessions of MCP clients leave behind in memory."""

import asyncio
from pathlib import Path

import httpx

from bench.mcp.requests import SESSIONS, greeting, mcp_request
from bench.processes import resident_mib
from bench.results import Single
from bench.service import HARMLESS, OurService, make_catalog

_CLIENTS = 16
_HEADERS = {**mcp_request(SESSIONS, "ping").headers, "Content-Type": "application/json"}


def measure_sessions(folder: Path, some: int, all_of_them: int) -> list[Single]:
    """MiB resident of the service's process after `some` sessions were opened and closed, and after all. Raises httpx.HTTPError."""
    service = OurService(folder / "sessions", make_catalog(folder / "sessions-data"), HARMLESS)
    try:
        singles, done = list[Single](), 0
        for name, number in (("some", some), ("all", all_of_them)):
            asyncio.run(_visit(f"{service.url}/mcp", number - done))
            done = number
            value = resident_mib(service.parts()["python"])
            label = f"resident, our Python, after {number:,} sessions of MCP clients"
            singles.append(Single(name=f"mcp.sessions.{name}", label=label, value=value, unit="MiB"))
        return singles
    finally:
        service.stop()


async def _visit(url: str, number: int) -> None:
    """Open and close so many, a few at once."""
    left = iter(range(number))
    async with httpx.AsyncClient(trust_env=False, timeout=60, headers=_HEADERS) as http:

        async def client() -> None:
            for _ in left:
                await _open_and_close(http, url)

        await asyncio.gather(*(client() for _ in range(_CLIENTS)))


async def _open_and_close(http: httpx.AsyncClient, url: str) -> None:
    begin, begun = greeting(SESSIONS)
    opened = (await http.post(url, content=begin)).raise_for_status()
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    (await http.post(url, content=begun, headers=session)).raise_for_status()
    (await http.delete(url, headers=session)).raise_for_status()
