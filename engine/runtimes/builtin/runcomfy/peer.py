"""HTTP to RunComfy and to its servers: at public addresses, and at the host that the setting names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx
from pydantic import JsonValue

from engine.network.peers import peer_client, read_at_most
from engine.network.tls import usual_tls
from engine.runtimes.builtin.runcomfy.account import URL_SETTING
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import Destinations, PinnedTransport
from engine.runtimes.http.json_answers import read_json
from toolagent.contracts.calls import ErrorType

_CONNECT_S, _ANSWER_S = 10.0, 60.0
_MAX_JSON = 8 << 20
_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is None if it is not JSON; `text` is its beginning."""

    status: int
    headers: Mapping[str, str]
    body: JsonValue
    text: str

    @property
    def facts(self) -> dict[str, JsonValue]:
        """For the details of a failure."""
        return {"status": self.status, "answer": self.text}


class NoAnswer(Exception):
    """`was_sent`: the server may have carried out the request."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Peer:
    """Makes clients; `host` is the host of the setting, which may be at a private address."""

    def __init__(self, host: str) -> None:
        self.destinations = Destinations((host,), setting=URL_SETTING)

    def client(self, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
        """A client, which the caller closes."""
        inner = httpx.AsyncHTTPTransport(verify=usual_tls(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
        return peer_client(
            PinnedTransport(self.destinations, inner),
            headers={"User-Agent": "tool-agent", "Accept": "application/json", "Connection": "close", **(headers or {})},
            timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S),
        )


class Api:
    """An API below one URL. Used as `async with`, which closes its connections."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self.url, self._http = url.rstrip("/"), http

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()


async def ask(client: httpx.AsyncClient, method: str, url: str, **content: Any) -> Answer:
    """The answer, whatever its status. Raises NoAnswer, and CallFailed (`security_error`)."""
    try:
        async with client.stream(method, url, **content) as response:
            body, is_whole = await read_at_most(response, _MAX_JSON)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise NoAnswer(str(error) or "the connection could not be made", was_sent=False) from error
    except httpx.HTTPError as error:
        raise NoAnswer(str(error) or type(error).__name__, was_sent=True) from error
    try:
        parsed = read_json(body) if is_whole else None
    except ValueError:
        parsed = None
    return Answer(response.status_code, response.headers, parsed, body[:_SHOWN].decode("utf-8", "replace"))


def unreachable(who: str, error: NoAnswer) -> CallFailed:
    """The failure of a request that was not sent, or that may be repeated."""
    outcome = "unknown" if error.was_sent else "failed"
    return CallFailed(ErrorType.UNAVAILABLE, f"{who} did not answer: {error}.", {"cause": "no_answer"}, outcome)
