"""`toolagent mcp stdio`: the service as an MCP server that a client starts."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Annotated

import httpx
import typer

from toolagent.cli.failures import reported
from toolagent.cli.options import ApiKey, Url
from toolagent.cli.parameters import ParameterError
from toolagent.client.http import DEFAULT_URL
from toolagent.client.http_paths import query
from toolagent.client.mcp_bridge import McpBridge

__all__ = ["stdio"]

_LONGEST_LINE = 64 * 1024 * 1024
_TOO_LONG = "A line on stdin has more than 64 MiB. Send one JSON-RPC message a line."


def stdio(
    tag: Annotated[str | None, typer.Option(help="Only tools that have this tag.", show_default=False)] = None,
    namespace: Annotated[str | None, typer.Option(help="Only tools whose ids begin with it and a colon.", show_default=False)] = None,
    group: Annotated[str | None, typer.Option(help="Only tools of this group.", show_default=False)] = None,
    search: Annotated[bool, typer.Option("--search", help="Instead of all tools, three that find, describe and call the others.")] = False,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = None,
) -> None:
    """Serve the tools of the service as MCP on stdin and stdout, for a client that starts its MCP servers.

    `toolagent mcp stdio --group office`
    """
    path = f"/mcp{query(tag=tag, namespace=namespace, group=group, mode='search' if search else None)}"
    with reported():
        asyncio.run(_bridge(url, api_key, path))


async def _bridge(url: str, api_key: str | None, path: str) -> None:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    # A call may take a day, and says nothing meanwhile.
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=httpx.Timeout(10, read=None)) as http:
        await McpBridge(http, _write, path).run(_lines())


async def _lines() -> AsyncIterator[str]:
    # An event loop cannot wait for a file or /dev/null; reading them does not block.
    if not (stat.S_ISFIFO(mode := os.fstat(sys.stdin.fileno()).st_mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty()):
        while line := sys.stdin.buffer.readline(_LONGEST_LINE + 2):
            if len(line.rstrip(b"\n")) > _LONGEST_LINE:
                raise ParameterError(_TOO_LONG)
            yield line.decode("utf-8", "replace")
        return
    reader = asyncio.StreamReader(_LONGEST_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await _read(reader):
        yield line.decode("utf-8", "replace")


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError as error:
        raise ParameterError(_TOO_LONG) from error


async def _write(line: str) -> None:
    """Writes UTF-8 in any locale. A lone surrogate, which UTF-8 cannot hold, becomes `?`."""
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()
