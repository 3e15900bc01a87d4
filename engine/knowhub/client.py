"""A client of KnowHub's API, at the URL of the operator's setting."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

import httpx
from pydantic import JsonValue
from pydantic_core import to_json

from engine.network.peers import peer_client, read_at_most
from toolagent.contracts.knowhub import LeftOutResource
from toolagent.core.texts import well_formed_json
from toolagent_service.knowhub.resources import left_out_of, listed_resources

SETTING = "TOOL_AGENT_KNOWHUB_URL"
SECRET = "KNOWHUB"  # noqa: S105 - its name
"""The secret that is sent as a bearer token: `TOOL_AGENT_SECRET_KNOWHUB`."""

_MAX_BYTES = 32 << 20
_CHANGED = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class KnowHubError(Exception):
    """A request failed. `is_passing`: another attempt may help."""

    def __init__(self, message: str, *, is_passing: bool = False) -> None:
        super().__init__(message)
        self.is_passing = is_passing


class ResourceGoneError(KnowHubError):
    """KnowHub does not have the resource any more."""


class ResourceChangedError(KnowHubError):
    """The resource was changed since it was read."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The resources, and the other entries of their list."""

    resources: tuple[dict[str, JsonValue], ...]
    left_out: tuple[LeftOutResource, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A resource as read. `tag` is its ETag, if it has one."""

    said: dict[str, JsonValue]
    tag: str | None


class KnowHubClient:
    """Requests take at most `timeout_s` seconds and raise KnowHubError. Close it with `aclose`."""

    def __init__(self, url: str, key: Callable[[], str | None], *, timeout_s: float = 10.0) -> None:
        self._base, self._key, self._timeout_s = f"{url.rstrip('/')}/api/resource", key, timeout_s
        self._client = peer_client(httpx.AsyncHTTPTransport(trust_env=False), timeout=timeout_s)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def list_all(self) -> Listed:
        answer, body = await self._ask("GET", "")
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise KnowHubError(f"{self._base} answers 404: there is no KnowHub at the URL of {SETTING}.")
        document = _parsed(answer, body)
        found = listed_resources(document)
        if found is None:
            raise KnowHubError(f"{self._base} answers with no list of resources. Look at {SETTING}.")
        return Listed(found, left_out_of(document))

    async def get(self, resource_id: str) -> Read:
        """Raises ResourceGoneError."""
        answer, body = await self._ask("GET", resource_id)
        said = _parsed(_there(answer, resource_id), body)
        if not isinstance(said, dict) or said.get("id") != resource_id:
            raise KnowHubError(f"KnowHub answers with no resource for {resource_id!r}.")
        return Read(said, answer.headers.get("etag"))

    async def patch(self, resource_id: str, metadata: dict[str, JsonValue], tag: str | None) -> None:
        """Change the metadata; with an ETag, only if the resource is unchanged. Raises ResourceGoneError, ResourceChangedError."""
        answer, body = await self._ask("PATCH", resource_id, to_json({"metadata": metadata}), {"If-Match": tag} if tag else {})
        if answer.status_code in _CHANGED:
            raise ResourceChangedError(f"{resource_id!r} is being changed by others.")
        _parsed(_there(answer, resource_id), body, is_empty_allowed=True)

    async def _ask(
        self, method: str, resource_id: str, content: bytes | None = None, more: dict[str, str] | None = None
    ) -> tuple[httpx.Response, bytes]:
        # Slashes of ids are part of the path. All other special characters are escaped.
        url = f"{self._base}/{quote(resource_id, safe='/')}" if resource_id else self._base
        headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if content else {}), **(more or {})}
        if key := self._key():
            headers["Authorization"] = f"Bearer {key}"
        try:
            async with asyncio.timeout(self._timeout_s), self._client.stream(method, url, content=content, headers=headers) as answer:
                body, is_whole = await read_at_most(answer, _MAX_BYTES)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeEncodeError) as error:
            raise KnowHubError(f"The URL of {SETTING}, or the secret {SECRET}, cannot be used ({type(error).__name__}).") from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise KnowHubError(f"KnowHub did not answer within {self._timeout_s:g} s.", is_passing=True) from error
        except (httpx.HTTPError, OSError) as error:
            raise KnowHubError(f"KnowHub cannot be reached: {error or type(error).__name__}.", is_passing=True) from error
        if not is_whole:
            raise KnowHubError(f"KnowHub answers with more than {_MAX_BYTES >> 20} MiB.")
        return answer, body


def _there(answer: httpx.Response, resource_id: str) -> httpx.Response:
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise ResourceGoneError(f"KnowHub has no resource {resource_id!r} any more.")
    return answer


def _parsed(answer: httpx.Response, body: bytes, *, is_empty_allowed: bool = False) -> JsonValue:
    status = answer.status_code
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise KnowHubError(f"KnowHub answers {status}: it wants another key. Set TOOL_AGENT_SECRET_{SECRET}.")
    if not answer.is_success:
        raise KnowHubError(f"KnowHub answers {status}.", is_passing=status in _BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR)
    if is_empty_allowed:
        return None
    try:
        found: JsonValue = json.loads(well_formed_json(body))
    except (ValueError, RecursionError) as error:
        raise KnowHubError(f"KnowHub answers {status} with what is no JSON. Look at {SETTING}.") from error
    return found
