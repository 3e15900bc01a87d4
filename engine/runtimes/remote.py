"""Reaches a tool that somebody else runs, over HTTP."""

from datetime import UTC, datetime

from pydantic import JsonValue

from engine.runtimes.http_exchange import HttpExchange, Target
from engine.runtimes.remote_keys import Secrets, filled, key_of
from engine.runtimes.request_parts import Places
from engine.runtimes.runtime import Progress, Running, ToolRequest
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import RemoteSource

__all__ = ["RemoteRuntime"]


class RemoteRuntime:
    """The runtime of RemoteSource. Nothing is started; whether it is there shows when it is called."""

    def __init__(self, http: HttpExchange, secrets: Secrets) -> None:
        self._http, self._secrets = http, secrets

    async def start(self, tool: ToolManifest, source: RemoteSource, progress: Progress) -> Running:
        progress(f"{tool.tool_id} is remote")
        return Running(endpoint=source.remote_url.partition("?")[0], started_at=datetime.now(UTC))

    async def is_alive(self, running: Running) -> bool:  # noqa: ARG002 - nobody knows but by asking
        return True

    async def is_idle(self, running: Running, source: RemoteSource) -> bool:  # noqa: ARG002 - it is not ours to end
        return True

    async def call(self, running: Running, source: RemoteSource, request: ToolRequest) -> JsonValue:
        key = key_of(source.remote_api_key, self._secrets)
        path, keys = filled(_path(source), self._secrets)
        target = Target(
            running.endpoint,
            source.http_method,
            path,
            {source.auth_header: f"{source.auth_scheme} {key}".strip()} if key else {},
            (key, *keys) if key else keys,
            through_gateways=True,
            places=Places.of(source),
            only_public=source.only_public,
        )
        return await self._http.call(target, request)

    async def stop(self, running: Running) -> None:
        """Nothing was started."""


def _path(source: RemoteSource) -> str:
    """The path of a call, with the query of both parts of its address behind it."""
    path, query = source.remote_path or source.endpoint_path, source.remote_url.partition("?")[2]
    whole = path if path.startswith("/") else f"/{path}"
    return f"{whole}{'&' if '?' in whole else '?'}{query}" if query else whole
