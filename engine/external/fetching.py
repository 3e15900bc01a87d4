"""Fetches a table: neither its URL nor its answer is trusted."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

import httpx

from engine.network.peers import peer_client, read_at_most
from engine.network.tls import machine_tls
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import Destinations, PinnedTransport
from toolagent.contracts.calls import ErrorType
from toolagent.core.failures import TableNotReachedError, TableRefusedError
from toolagent.core.loopback import is_confidential

ALLOW_SETTING = "TOOL_AGENT_EXTERNAL_TOOLS_ALLOW"

_URL = "tools_url"
_REDIRECTS = 3
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer. `url` is the URL after redirects."""

    url: str
    body: bytes


class OtherStatusError(TableRefusedError):
    """It answered another status than 200."""

    def __init__(self, status: int) -> None:
        super().__init__(_URL, f"It answered {status}{_remedy(status)}.")
        self.status = status


class TableFetch:
    """Fetches tables; every hop goes to a checked address. `max_bytes` limits an answer, `timeout_s` the whole request."""

    def __init__(self, destinations: Destinations, *, max_bytes: int = 8 << 20, timeout_s: float = 15.0) -> None:
        self._destinations, self._max_bytes, self._timeout_s = destinations, max_bytes, timeout_s

    async def get(self, url: str, key: str | None) -> Fetched:
        """Raises TableRefusedError, TableNotReachedError."""
        return await self._ask("GET", url, key, None)

    async def post(self, url: str, key: str | None, body: bytes) -> Fetched:
        """Raises TableRefusedError, TableNotReachedError."""
        return await self._ask("POST", url, key, body)

    async def _ask(self, method: str, url: str, key: str | None, body: bytes | None) -> Fetched:
        _require_usable(url, key)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._answer(method, url, key, body)
        except CallFailed as failure:
            if failure.details.get("no_such_host") is False:
                raise TableNotReachedError(failure.message) from failure
            is_private = failure.error_type is ErrorType.SECURITY_ERROR
            raise TableRefusedError(_URL, failure.message, is_private=is_private) from failure
        except httpx.TooManyRedirects as error:
            raise TableRefusedError(_URL, f"It redirects more than {_REDIRECTS} times. Give the URL that this ends at.") from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise TableRefusedError(_URL, f"This is no http:// or https:// URL: {error}.") from error
        except (httpx.HTTPError, OSError) as error:
            if isinstance(error, (TimeoutError, httpx.TimeoutException)):
                raise TableRefusedError(_URL, f"It did not answer in full within {self._timeout_s:g} s.") from error
            raise TableRefusedError(_URL, f"It cannot be reached: {str(error).rstrip('.') or type(error).__name__}.") from error

    async def _answer(self, method: str, url: str, key: str | None, body: bytes | None) -> Fetched:
        inner = httpx.AsyncHTTPTransport(verify=machine_tls(), limits=httpx.Limits(max_keepalive_connections=0))
        headers = {"Accept": "application/json, application/yaml;q=0.9, */*;q=0.5", "User-Agent": "tool-agent"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        transport = PinnedTransport(self._destinations, inner)
        # httpx drops `Authorization` where a redirect leads to another server.
        async with (
            peer_client(transport, timeout=self._timeout_s, max_redirects=_REDIRECTS) as client,
            client.stream(method, url, content=body, headers=headers) as answer,
        ):
            if answer.status_code != HTTPStatus.OK:
                raise OtherStatusError(answer.status_code)
            content, is_whole = await read_at_most(answer, self._max_bytes)
            if not is_whole:
                raise TableRefusedError(_URL, f"It answers with more than {self._max_bytes >> 20} MiB. Give the URL of a part of it.")
            return Fetched(str(answer.url), content)


def _require_usable(url: str, key: str | None) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise TableRefusedError(_URL, f"This is no URL: {error}.") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or not (parsed.port is None or 0 < parsed.port <= _MAX_PORT):
        raise TableRefusedError(_URL, "Give an http:// or https:// URL with a host.")
    if parsed.userinfo:
        raise TableRefusedError(_URL, "It holds a user name or password. Leave that out, and give a key in `api_key`.")
    if key and not (key.isascii() and key.isprintable()):
        raise TableRefusedError("api_key", "It goes into a header, which holds printable ASCII only.")
    if key and not is_confidential(parsed.scheme, parsed.host):
        message = "The key would be sent over http://, where everybody on the way can read it. Give an https:// URL, or no key."
        raise TableRefusedError(_URL, message)


def _remedy(status: int) -> str:
    return "; it wants another `api_key`" if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) else ""
