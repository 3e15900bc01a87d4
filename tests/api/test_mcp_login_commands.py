"""Logins at MCP servers by the command line."""

import asyncio
from collections.abc import Generator
from urllib.parse import quote

import httpx
import pytest
from typer.testing import CliRunner

from tests.api.conftest import House
from tests.api.serving import served
from tests.api.test_mcp_logins import logged_in, shown
from tests.api.test_mcp_servers import register
from tests.mcp_servers.authorized import Authorized, authorized, visited
from toolagent.cli.app import app as command_line


@pytest.fixture
def site() -> Generator[Authorized]:
    with authorized() as site:
        yield site


@pytest.mark.parametrize("words", [("add", "far", "URL"), ("login", "far")])
async def test_the_command_line_shows_the_url_and_waits(house: House, site: Authorized, words: tuple[str, ...]) -> None:
    if words[0] == "login":
        await register(house, "far", url=site.url)
    async with served(house.dependencies) as url:
        given = [site.url if word == "URL" else word for word in words]
        running = asyncio.create_task(asyncio.to_thread(CliRunner().invoke, command_line, ["mcp", *given, "--url", url]))
        async with asyncio.timeout(60), httpx.AsyncClient() as browser:
            # One that leads back to this front door is what the command has begun.
            while quote(url, safe="") not in (login_url := str((await house.http.get("/mcp_servers/far")).json().get("login_url"))):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert (await browser.get(await visited(login_url))).status_code == 200
            result = await running
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (0, ["  far_whoami"])
    assert (login_url in result.stderr, "failed" in result.stderr) == (True, False)


async def test_the_command_line_ends_with_1_where_there_was_no_login(
    house: House, site: Authorized, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolagent.cli.mcp._EXCHANGE_S", 1.0)
    await logged_in(house, site)
    site.doorman.refuses = "access_denied"
    async with served(house.dependencies) as url:
        running = asyncio.create_task(asyncio.to_thread(CliRunner().invoke, command_line, ["mcp", "login", "far", "--url", url]))
        async with asyncio.timeout(60), httpx.AsyncClient() as browser:
            while (login_url := (await shown(house)).login_url) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert (await browser.get(await visited(login_url))).status_code == 400
            result = await running
    assert (result.exit_code, result.stdout, "There was no login" in result.stderr) == (1, "", True)


async def test_an_address_of_another_scheme_is_taken_for_a_url_and_not_for_a_program(house: House) -> None:
    async with served(house.dependencies) as url:
        words = ["mcp", "add", "far", "ftp://example.com/mcp", "--url", url]
        result = await asyncio.to_thread(CliRunner().invoke, command_line, words)
    assert (result.exit_code, "url: Give an http:// or https:// URL" in result.stderr) == (1, True)
