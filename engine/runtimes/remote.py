"""Reaches a tool that somebody else runs, over HTTP."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

from pydantic import JsonValue

from engine.runtimes.failures import NotSent
from engine.runtimes.http_exchange import HttpExchange, Target
from engine.runtimes.request_parts import Places
from engine.runtimes.runtime import Progress, Running, ToolRequest
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import RemoteSource

__all__ = ["RemoteRuntime", "Secrets"]

Secrets = Callable[[str], str | None]
"""The value of a secret by its name without `secret:`, or None."""

_IN_A_QUERY = re.compile(r"(?<==)secret:([A-Z][A-Z0-9_]*)(?=[&#]|$)")
_HEADER_TEXT = re.compile(r"[\x20-\x7e]+")


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
        key = self._key(source)
        path, keys = self._filled(_path(source))
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

    def _filled(self, path: str) -> tuple[str, tuple[str, ...]]:
        """The path with the secrets that its query names, and these, also as they stand there. Raises NotSent."""
        place, mark, query = path.partition("?")
        found = {name: self._secrets(name) or "" for name in _IN_A_QUERY.findall(query)}
        for name in (name for name, value in found.items() if not value):
            raise _not_there(name, "is not set")
        query = _IN_A_QUERY.sub(lambda named: quote(found[named[1]], safe=""), query)
        return place + mark + query, tuple(dict.fromkeys(form for value in found.values() for form in (value, quote(value, safe=""))))

    def _key(self, source: RemoteSource) -> str | None:
        """The key, resolved anew for each call. Raises NotSent when it is named but not there."""
        if source.remote_api_key is None:
            return None
        name = source.remote_api_key.removeprefix("secret:")
        key = (self._secrets(name) or "").strip()
        if _HEADER_TEXT.fullmatch(key):
            return key
        said = "cannot be sent in a header: it holds characters outside ASCII" if key else "is not set"
        raise _not_there(name, said)


def _path(source: RemoteSource) -> str:
    """The path of a call, with the query of both parts of its address behind it."""
    path, query = source.remote_path or source.endpoint_path, source.remote_url.partition("?")[2]
    whole = path if path.startswith("/") else f"/{path}"
    return f"{whole}{'&' if '?' in whole else '?'}{query}" if query else whole


def _not_there(name: str, said: str) -> NotSent:
    return NotSent(
        ErrorType.DEPENDENCY_ERROR,
        f"The secret {name!r} of the remote tool {said}. Set TOOL_AGENT_SECRET_{name}.",
        {"secret": name, "setting": f"TOOL_AGENT_SECRET_{name}"},
    )
