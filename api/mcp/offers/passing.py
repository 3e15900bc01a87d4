"""What registered MCP servers have besides tools, passed through: prompts, resources, completions."""

from collections.abc import Mapping
from dataclasses import dataclass

from mcp import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import JsonValue

from api.ports import Upstreams
from toolagent.contracts.call_messages import Listener

_NOT_FOUND = -32_002


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is: the server, and what it is called there."""

    server: str
    name: str


class Passing:
    """All raise StoreUnavailableError."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams

    async def prompts(self, taken: set[str]) -> dict[str, tuple[Place, dict[str, JsonValue]]]:
        """By the names they have here: their own, unless it is `taken` or another server's; then that of the server goes before."""
        found: dict[str, tuple[Place, dict[str, JsonValue]]] = {}
        for listed in await self._upstreams.listed("prompts"):
            own = listed.item.get("name")
            if isinstance(own, str):
                name = own if own not in taken and own not in found else f"{listed.server}__{own}"
                found.setdefault(name, (Place(listed.server, own), {**listed.item, "name": name}))
        return found

    async def resources(self) -> dict[str, tuple[Place, dict[str, JsonValue]]]:
        """By URI; of one URI the first server's."""
        found: dict[str, tuple[Place, dict[str, JsonValue]]] = {}
        for listed in await self._upstreams.listed("resources"):
            if isinstance(uri := listed.item.get("uri"), str):
                found.setdefault(uri, (Place(listed.server, uri), dict(listed.item)))
        return found

    async def templates(self) -> dict[str, tuple[Place, dict[str, JsonValue]]]:
        """By template."""
        found: dict[str, tuple[Place, dict[str, JsonValue]]] = {}
        for listed in await self._upstreams.listed("resourceTemplates"):
            if isinstance(template := listed.item.get("uriTemplate"), str):
                found.setdefault(template, (Place(listed.server, template), dict(listed.item)))
        return found

    async def place_of(self, uri: str) -> Place | None:
        """Whose resource it is; None for nobody's."""
        if (found := (await self.resources()).get(uri)) is not None:
            return found[0]
        for template, (place, _) in (await self.templates()).items():
            if template == uri or _fits(template, uri):
                return Place(place.server, uri)
        return None

    async def ask(
        self, place: Place, method: str, params: Mapping[str, JsonValue], listens: Listener | None = None
    ) -> dict[str, JsonValue]:
        """The server's result. Raises MCPError with its error."""
        answer = await self._upstreams.ask(place.server, method, params, listens)
        result, error = answer.get("result"), answer.get("error")
        if isinstance(result, dict):
            return {key: value for key, value in result.items() if key not in {"ttlMs", "cacheScope"}}
        told = error if isinstance(error, dict) else {}
        code, message = told.get("code"), told.get("message")
        raise MCPError(code if isinstance(code, int) else INTERNAL_ERROR, str(message or "The server gave no answer."), told.get("data"))


def as_revision(error: MCPError, *, modern: bool) -> MCPError:
    """The error of a resource that is not there has another code in each revision."""
    if error.error.code not in {_NOT_FOUND, INVALID_PARAMS}:
        return error
    return MCPError(INVALID_PARAMS if modern else _NOT_FOUND, error.error.message, error.error.data)


def _fits(template: str, uri: str) -> bool:
    try:
        return UriTemplate.parse(template).match(uri) is not None
    except ValueError:
        return False
