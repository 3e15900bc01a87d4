"""HTTP to RunComfy and to the servers it lets: public addresses, and the host that the setting names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    """`body` is None for what is no JSON."""

    status: int
    headers: Mapping[str, str]
    body: JsonValue
    text: str


class NoAnswer(Exception):
    """`was_sent`: the request may have been carried out."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Peer:
    """The way to RunComfy; `host` is the one of the setting."""

    def __init__(self, host: str) -> None:
        self.destinations = Destinations((host,), setting=URL_SETTING)

    def client(self, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
        """To be closed."""
        inner = httpx.AsyncHTTPTransport(verify=usual_tls(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
        return peer_client(
            PinnedTransport(self.destinations, inner),
            headers={"User-Agent": "tool-agent", "Accept": "application/json", "Connection": "close", **(headers or {})},
            timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S),
        )


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


def unreachable(who: str, error: NoAnswer, **details: JsonValue) -> CallFailed:
    """For a request that may be repeated, or that was not sent."""
    outcome = "unknown" if error.was_sent else "failed"
    return CallFailed(ErrorType.UNAVAILABLE, f"{who} did not answer: {error}.", {**details, "cause": "no_answer"}, outcome)
