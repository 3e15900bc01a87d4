"""HTTP clients for other servers, and the one way to read their answers: only a bounded part of an answer is in memory at a time."""

import asyncio
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType

import httpx

from toolagent.client.bounded_answers import BoundedAnswers
from toolagent.core.calls.unpacking import PACKINGS

_LARGE_BYTES = 8 << 20
_LARGE_AT_ONCE = 2


class LargeAnswer:
    """A limit on large answers in memory at one time: others wait, partly read, within the time of their reader."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots, self._holds = slots, False

    @staticmethod
    def slots() -> asyncio.Semaphore:
        """To be shared by all answers that the limit counts together."""
        return asyncio.Semaphore(_LARGE_AT_ONCE)

    async def grown(self, size: int) -> None:
        if size > _LARGE_BYTES and not self._holds:
            await self._slots.acquire()
            self._holds = True

    def __enter__(self) -> "LargeAnswer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._holds:
            self._slots.release()


def peer_client(
    transport: httpx.AsyncBaseTransport,
    *,
    timeout: httpx.Timeout | float = 5.0,
    packed: bool = False,
    keeps_unknown: bool = False,
    max_redirects: int = 0,
    headers: dict[str, str] | None = None,
) -> httpx.AsyncClient:
    """Takes nothing from the environment and keeps no cookies. To be closed with `aclose`.

    Answers are asked for as they are, or `packed` if the peer likes; what is packed all the same is unpacked in pieces while it is read.
    httpx bounds their heads, at 100 KiB.
    """
    return httpx.AsyncClient(
        transport=transport,
        headers={"Accept-Encoding": PACKINGS if packed else "identity", **(headers or {})},
        timeout=timeout,
        follow_redirects=max_redirects > 0,
        max_redirects=max_redirects,
        trust_env=False,
        # Cookies of one peer must not reach another.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        event_hooks={"response": [BoundedAnswers(keeps_unknown=keeps_unknown)]},
    )


async def read_at_most(response: httpx.Response, max_bytes: int, large: LargeAnswer | None = None) -> tuple[bytes, bool]:
    """The beginning of the body, unpacked, and whether that is all of it. Raises httpx.HTTPError.

    It has no bound of time: every reader sets one around it.
    """
    body = bytearray()
    async for piece in response.aiter_raw():
        if large is not None:
            await large.grown(len(body) + len(piece))
        body += piece[: max_bytes + 1 - len(body)]
        if len(body) > max_bytes:
            return bytes(memoryview(body)[:max_bytes]), False
    return bytes(body), True
