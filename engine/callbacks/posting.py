"""Posts a signed callback to an untrusted URL."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
from pydantic_core import to_json

from engine.network.peers import peer_client
from engine.network.tls import machine_tls
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import Destinations, PinnedTransport
from toolagent.contracts.callbacks import Callback
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.callbacks import signatures

SECRET = "CALLBACK"  # noqa: S105 - its name
"""The secret that signs callbacks: `TOOL_AGENT_SECRET_CALLBACK`."""

ALLOW_SETTING = "TOOL_AGENT_CALLBACK_ALLOW"

_MAX_WAIT_S = 3600.0
_LOOKUP_S = 3.0
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_UNSIGNED = (
    "Callbacks are signed, and there is no secret to sign with: "
    "set TOOL_AGENT_SECRET_CALLBACK, or write a line CALLBACK=… into `secrets` in the state directory."
)


class CallbackNotTaken(Exception):
    """The receiver refused the callback. `is_final`: another attempt is useless; `wait_s`: how long it asked us to wait."""

    def __init__(self, reason: str, *, is_final: bool = False, status_code: int | None = None, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.is_final, self.status_code, self.wait_s = is_final, status_code, wait_s


def callback_destinations(allow: Sequence[str]) -> Destinations:
    """Public addresses, and those of the setting. Raises ValueError for an entry that is no host, address or CIDR."""
    return Destinations(allow, setting=ALLOW_SETTING)


class CallbackPoster:
    """Each post has its own connection, to a checked address; redirects are not followed."""

    def __init__(self, destinations: Destinations, secret: Callable[[], str | None], *, timeout_s: float = 10.0) -> None:
        self._destinations, self._secret, self._timeout_s = destinations, secret, timeout_s

    async def refusal(self, url: str) -> str | None:
        """Why this URL is refused. A name that cannot be resolved now may be later, so it is not refused."""
        if not self._secret():
            return _UNSIGNED
        try:
            parsed = httpx.URL(url)
            if parsed.userinfo:
                return "A URL with a user name or password is refused: what is sent is signed instead."
            async with asyncio.timeout(_LOOKUP_S):
                await self._destinations.of(parsed)
        except httpx.InvalidURL as error:
            return f"This is no URL: {error}."
        except CallFailed as failure:
            return failure.message if failure.error_type is ErrorType.SECURITY_ERROR else None
        except TimeoutError:
            return None
        return None

    async def post(self, callback: Callback) -> int:
        """The 2xx status of the receiver. Raises CallbackNotTaken."""
        if not (secret := self._secret()):
            raise CallbackNotTaken(_UNSIGNED)
        body = to_json({"type": callback.type, "timestamp": callback.at.isoformat(), "data": callback.data})
        now = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "tool-agent",
            "webhook-id": callback.event_id,
            "webhook-timestamp": str(now),
            "webhook-signature": signatures(secret, callback.event_id, now, body),
        }
        try:
            async with asyncio.timeout(self._timeout_s):
                return _judged(*await self._answer(callback.url, body, headers))
        except CallFailed as failure:
            raise CallbackNotTaken(failure.message, is_final=failure.error_type is ErrorType.SECURITY_ERROR) from failure
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise CallbackNotTaken(f"This is no URL to post to: {error}.", is_final=True) from error
        except (httpx.HTTPError, OSError) as error:
            if isinstance(error, (TimeoutError, httpx.TimeoutException)):
                raise CallbackNotTaken(f"There was no answer within {self._timeout_s:g} s.") from error
            raise CallbackNotTaken(f"It could not be posted: {error or type(error).__name__}.") from error

    async def _answer(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, httpx.Headers]:
        """Reads only the head of the answer: its body is useless, and might not end."""
        inner = httpx.AsyncHTTPTransport(verify=machine_tls(), limits=httpx.Limits(max_keepalive_connections=0))
        transport = PinnedTransport(self._destinations, inner)
        async with (
            peer_client(transport, timeout=self._timeout_s) as client,
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            return answer.status_code, answer.headers


def _judged(status: int, headers: httpx.Headers) -> int:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return status
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        reason = f"The receiver answered {status}, a redirect; callbacks do not follow them. Give the URL that it leads to."
        raise CallbackNotTaken(reason, is_final=True, status_code=status)
    is_final = status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _AGAIN
    raise CallbackNotTaken(
        f"The receiver answered {status}.", is_final=is_final, status_code=status, wait_s=_asked_wait_s(headers.get("retry-after", ""))
    )


def _asked_wait_s(header: str) -> float | None:
    """`Retry-After`: seconds, or a date."""
    if header.isascii() and header.isdecimal():
        return min(float(header[:10]), _MAX_WAIT_S)
    try:
        asked = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(asked, 0.0), _MAX_WAIT_S)
