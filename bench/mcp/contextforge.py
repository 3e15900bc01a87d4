"""ContextForge, an MCP gateway, with the bench's HTTP tool registered as a tool of its REST kind; in its own environment."""

import secrets
import subprocess
from contextlib import suppress
from pathlib import Path

import httpx
from pydantic import JsonValue

from bench.environments import python_of
from bench.mcp.requests import OLDER, McpRequest, tool_call
from bench.processes import Child, bare_environment
from engine.network.ports import free_port

_START_S = 240.0
"""It makes its database at its first start."""

_TOOL = "say"
_ADMIN = "admin@example.com"
_SECRETS = ("JWT_SECRET_KEY", "AUTH_ENCRYPTION_SECRET", "CSRF_SECRET_KEY", "PLATFORM_ADMIN_PASSWORD", "BASIC_AUTH_PASSWORD")


class ContextForge:
    """As it comes, but for what would be in the way of measuring: limits of rates are off, callers need no token, and tools may be on this
    machine. One process, no sessions and plain JSON, which are its defaults. Raises NotReadyError."""

    def __init__(self, folder: Path, tool_url: str) -> None:
        port, python = free_port(), python_of("contextforge")
        settings = {
            "DATABASE_URL": f"sqlite:///{folder / 'contextforge.db'}",
            "CACHE_TYPE": "memory",
            "MCP_REQUIRE_AUTH": "false",
            "RATE_LIMITING_ENABLED": "false",
            "SSRF_ALLOW_LOCALHOST": "true",
            "PLATFORM_ADMIN_EMAIL": _ADMIN,
            **{name: secrets.token_urlsafe(48) for name in _SECRETS},
        }
        environment = {"HOME": str(folder), "PATH": bare_environment().get("PATH", "/usr/bin:/bin"), **settings}
        command = [str(python.with_name("mcpgateway")), "--host", "127.0.0.1", "--port", str(port), "--no-access-log"]
        self.child = Child(command, folder, "contextforge", environment)
        self.url, self.call = f"http://127.0.0.1:{port}/mcp/", _single_call()
        try:
            self.child.ready(lambda: _is_healthy(port), _START_S)
            _register(port, _token(python, folder, environment), tool_url)
        except BaseException:
            self.child.stop()
            raise


def _single_call() -> McpRequest:
    """Without a session, which its defaults do not have."""
    call = tool_call(OLDER, _TOOL)
    return McpRequest(call.body, call.headers)


def _is_healthy(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False, timeout=10).is_success
    return False


def _token(python: Path, folder: Path, environment: dict[str, str]) -> str:
    """Of an administrator, for as long as it takes to register a tool."""
    command = [str(python), "-m", "mcpgateway.utils.create_jwt_token", "--username", _ADMIN, "--admin", "--exp", "10"]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.split()[-1]


def _register(port: int, token: str, tool_url: str) -> None:
    schema: JsonValue = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    kind = {"integration_type": "REST", "request_type": "POST", "visibility": "public"}
    tool = {"name": _TOOL, "url": tool_url, "description": "Says it back.", "input_schema": schema, **kind}
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.post(f"http://127.0.0.1:{port}/tools", json={"tool": tool}, headers=headers, trust_env=False, timeout=60)
    answer.raise_for_status()
