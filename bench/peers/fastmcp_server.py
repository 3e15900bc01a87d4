"""FastMCP over streamable HTTP as `FastMCP.run` sets it up; runs in its own environment.

`python fastmcp_server.py PORT TOOL_URL [sessionless]`, where `sessionless` is its fastest form: no session, and plain JSON instead of a
stream of one event.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false

import sys

import httpx
from fastmcp import FastMCP

_PORT, _TOOL, _SESSIONLESS = int(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["sessionless"]

_server = FastMCP("bench")
_http = httpx.AsyncClient(limits=httpx.Limits(max_connections=100, keepalive_expiry=2), trust_env=False)


@_server.tool
async def echo(message: str) -> dict[str, object]:
    return {"message": message}


@_server.tool
async def call_http(message: str) -> dict[str, object]:
    """The same request to the same tool server as the others make."""
    answer = await _http.post(_TOOL, json={"message": message})
    answer.raise_for_status()
    return answer.json()


_server.run(
    transport="http",
    host="127.0.0.1",
    port=_PORT,
    show_banner=False,
    log_level="warning",
    stateless_http=_SESSIONLESS,
    json_response=_SESSIONLESS,
    uvicorn_config={"access_log": False},
)
