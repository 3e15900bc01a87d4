"""Passes through the prompts, resources and completions of registered MCP servers."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from mcp import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import JsonValue

from api.json_object import JsonObject
from api.ports import Upstreams
from toolagent.contracts.call_messages import Listener

OWN = "toolagent:"
"""The scheme of our URIs, also if a registered server lists one."""

_NOT_FOUND = -32_002
"""The code for an unknown resource in the older revision. In the newer one it is an invalid param."""

_LONGEST_URI = 2048
_LONGEST_TEMPLATE = 1000
_MOST_VARIABLES = 16
_MATCHED_S = 1.0
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Place:
    """A server, and the name of something there."""

    server: str
    name: str


class Passing:
    """All methods raise StoreUnavailableError."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams

    async def prompts(self, taken: set[str]) -> dict[str, tuple[Place, JsonObject]]:
        """Prompts by name. A name that is `taken`, or another server's, gets the name of its server as prefix."""
        found: dict[str, tuple[Place, JsonObject]] = {}
        for listed in await self._upstreams.listed("prompts"):
            own = listed.item.get("name")
            if isinstance(own, str):
                name = own if own not in taken and own not in found else f"{listed.server}__{own}"
                found.setdefault(name, (Place(listed.server, own), {**listed.item, "name": name}))
        return found

    async def resources(self) -> dict[str, tuple[Place, JsonObject]]:
        """Resources by URI, without ours. The first server that lists a URI has it."""
        return await self._listed("resources", "uri", lambda uri: len(uri) <= _LONGEST_URI and not is_own(uri))

    async def templates(self) -> dict[str, tuple[Place, JsonObject]]:
        """Templates of resources, without those that match any scheme or ours, or take long to match."""
        return await self._listed("resourceTemplates", "uriTemplate", lambda template: _parsed(template) is not None)

    async def _listed(
        self, kind: Literal["resources", "resourceTemplates"], key: str, passes: Callable[[str], bool]
    ) -> dict[str, tuple[Place, JsonObject]]:
        found: dict[str, tuple[Place, JsonObject]] = {}
        for listed in await self._upstreams.listed(kind):
            if isinstance(name := listed.item.get(key), str) and passes(name):
                found.setdefault(name, (Place(listed.server, name), listed.item))
        return found

    async def place_of(self, uri: str) -> Place | None:
        """The server of a resource; None for an unknown one, and for ours. Raises MCPError for a URI that is too long."""
        require_short(uri)
        if is_own(uri):
            return None
        if (found := (await self.resources()).get(uri)) is not None:
            return found[0]
        templates = await self.templates()
        fitting = await asyncio.to_thread(_fitting, tuple(templates), uri)
        return Place(templates[fitting][0].server, uri) if fitting is not None else None

    async def ask(self, place: Place, method: str, params: Mapping[str, JsonValue], listens: Listener | None = None) -> JsonObject:
        """The server's result. Raises MCPError with its error."""
        answer = await self._upstreams.ask(place.server, method, params, listens)
        result, error = answer.get("result"), answer.get("error")
        if isinstance(result, dict):
            return {key: value for key, value in result.items() if key not in {"ttlMs", "cacheScope"}}
        told = error if isinstance(error, dict) else {}
        code, message = told.get("code"), told.get("message")
        raise MCPError(code if isinstance(code, int) else INTERNAL_ERROR, str(message or "The server gave no answer."), told.get("data"))


def as_revision(error: MCPError, *, modern: bool) -> MCPError:
    """The error about an unknown resource, with the code of the revision."""
    if error.error.code not in {_NOT_FOUND, INVALID_PARAMS}:
        return error
    return MCPError(INVALID_PARAMS if modern else _NOT_FOUND, error.error.message, error.error.data)


def require_short(uri: str) -> None:
    """Raises MCPError."""
    if len(uri) > _LONGEST_URI:
        raise MCPError(INVALID_PARAMS, f"uri: it has {len(uri)} characters; at most {_LONGEST_URI} are taken.")


def is_own(uri: str) -> bool:
    """Whether the URI has our scheme."""
    return uri[: len(OWN)].lower() == OWN


def _fitting(templates: Sequence[str], uri: str) -> str | None:
    """The first template that is this URI or matches it, found within a second."""
    ends_at = time.monotonic() + _MATCHED_S
    for template in templates:
        parsed = _parsed(template)
        if template == uri or (parsed is not None and parsed.match(uri) is not None):
            return template
        if time.monotonic() > ends_at:
            return None
    return None


@lru_cache(maxsize=4096)
def _parsed(template: str) -> UriTemplate | None:
    """None for a template that is not passed through."""
    if _SCHEME.match(template) is None or is_own(template):
        return None
    try:
        return UriTemplate.parse(template, max_length=_LONGEST_TEMPLATE, max_variables=_MOST_VARIABLES)
    except ValueError:
        return None
