"""Connects stdin and stdout to an MCP server that only speaks HTTP.

Written by Tool Agent.
The server has the main thread, the bridge another one. The usual variables hold a free port; /proc tells which port the server took.
The transports of the server's own SDK forward messages unchanged. Server and bridge end together.
"""

import contextlib
import datetime
import functools
import http.client
import io
import json
import os
import re
import socket
import sys
import threading
import time
import traceback
import urllib.parse

_PORTS = ("PORT", "MCP_PORT", "SERVER_PORT", "HTTP_PORT", "FASTMCP_PORT", "UVICORN_PORT", "MCP_SERVER_PORT")
_HOSTS = ("HOST", "MCP_HOST", "SERVER_HOST", "FASTMCP_HOST", "UVICORN_HOST", "MCP_SERVER_HOST")
_PATHS = ("/mcp", "/mcp/", "/", "/sse", "/api/mcp", "/messages")
_LISTENS = "0A"
_START_S = 120.0
_PROBE_S = 10.0
_PAUSE_S = 0.1
_ANSWER_S = 30.0
_SILENT_S = 86_400.0
_SAID = re.compile(r"[\"'](/[\w/-]{0,100})[\"']")
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "tool-agent", "version": "1"}},
}
_STREAMABLE, _EVENTS = ("application/json", "text/event-stream"), ("text/event-stream",)
_BOTH = ", ".join(_STREAMABLE)


def bridge(source=""):
    """Starts the bridge; from now on, prints go to stderr. Paths in the server's `source` are tried first."""
    asked, answered = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for name in _PORTS:
        os.environ.setdefault(name, port)
    for name in _HOSTS:
        os.environ.setdefault(name, "127.0.0.1")
    threading.Thread(target=_run, args=(asked, answered, source), daemon=True).start()


def _run(asked, answered, source):
    try:
        port, (kind, path) = _found(source)
        sys.stderr.write(f"The MCP server listens on port {port} and speaks {kind} at {path}.\n")
        _forwarded(asked, answered, kind, f"http://127.0.0.1:{port}{path}")
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    # The client is gone.
    os._exit(0)


def _found(source):
    over = time.monotonic() + _START_S
    named = (path for path in _SAID.findall(source) if "mcp" in path.lower() or "sse" in path.lower())
    paths = [*dict.fromkeys((*named, *_PATHS))]
    ports = []
    while time.monotonic() < over:
        ports = _listening(os.getpid())
        for port in ports:
            spoken = _spoken(port, paths)
            if spoken is not None:
                return port, spoken
        time.sleep(_PAUSE_S)
    listens = f"it listens on {', '.join(map(str, ports))}" if ports else "it listens on no port"
    raise RuntimeError(f"No path of the MCP server speaks MCP ({listens}; {', '.join(paths)} were tried).")


def _listening(root):
    """The ports on which this process or a child listens."""
    inodes = {inode for pid in _family(root) for inode in _sockets(pid)}
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = open(table).read().splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if words[3] == _LISTENS and words[9] in inodes:
                found[int(words[1].rpartition(":")[2], 16)] = None
    return [*found]


def _family(root):
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _sockets(pid):
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _spoken(port, paths):
    """The protocol and path that answer: `streamable HTTP` before the older `SSE`."""
    for method, body, kind, media in (("POST", json.dumps(_HELLO), "streamable HTTP", _STREAMABLE), ("GET", None, "SSE", _EVENTS)):
        for path in paths:
            told = _asked(port, method, path, body)
            if told is not None and told[0] in (307, 308) and told[2] != path:
                path, told = told[2], _asked(port, method, told[2], body)
            if told is not None and told[0] == 200 and told[1] in media:
                return kind, path
    return None


def _asked(port, method, path, body):
    """Status, media type and the target of a redirect. Ends the session that the request began, because the server has one client."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PROBE_S)
    try:
        headers = {"Accept": _BOTH if body else "text/event-stream", **({"Content-Type": "application/json"} if body else {})}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        session = answer.getheader("mcp-session-id")
        elsewhere = urllib.parse.urlsplit(answer.getheader("location") or path).path
        told = answer.status, (answer.getheader("content-type") or "").partition(";")[0].strip().lower(), elsewhere
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    if session and body:
        _ended(port, path, session)
    return told


def _ended(port, path, session):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PROBE_S)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("DELETE", path, headers={"mcp-session-id": session, "Accept": _BOTH})
        connection.getresponse().read()


def _forwarded(asked, answered, kind, url):
    import anyio
    from mcp.server.stdio import stdio_server

    async def pump(source, target, scope):
        async with source, target:
            async for message in source:
                if isinstance(message, Exception):
                    sys.stderr.write(f"Not MCP: {message}\n")
                else:
                    await target.send(message)
        scope.cancel()

    async def main():
        told = [anyio.wrap_file(io.TextIOWrapper(os.fdopen(one, mode), "utf-8")) for one, mode in ((asked, "rb"), (answered, "wb"))]
        async with stdio_server(*told) as ours, _client(kind)(url) as theirs, anyio.create_task_group() as group:
            group.start_soon(pump, ours[0], theirs[1], group.cancel_scope)
            group.start_soon(pump, theirs[0], ours[1], group.cancel_scope)

    anyio.run(main)


def _client(kind):
    """The SDK's client. Calls may be silent for a day, because the service enforces their time-outs."""
    if kind == "SSE":
        from mcp.client.sse import sse_client

        return functools.partial(sse_client, sse_read_timeout=_SILENT_S)
    from mcp.client import streamable_http

    if (of_2 := getattr(streamable_http, "streamable_http_client", None)) is None:
        return functools.partial(streamable_http.streamablehttp_client, sse_read_timeout=datetime.timedelta(seconds=_SILENT_S))
    client = streamable_http.create_mcp_http_client()
    client.timeout = type(client.timeout)(_ANSWER_S, read=_SILENT_S)
    return functools.partial(of_2, http_client=client)
