"""HTTP clients for other servers, and the reader of their answers, which holds a bounded part in memory."""

import asyncio
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Self

import httpx

from toolagent.client.bounded_answers import BoundedAnswers
from toolagent.core.calls.unpacking import PACKINGS

_LARGE_BYTES = 8 << 20
_LARGE_AT_ONCE = 2


class LargeAnswer:
    """Takes one of the shared slots once an answer grows large; others wait, partly read, within the time limit of their reader."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots, self._holds = slots, False

    @staticmethod
    def slots() -> asyncio.Semaphore:
        """The slots that one owner shares among all its answers."""
        return asyncio.Semaphore(_LARGE_AT_ONCE)

    async def grown(self, size: int) -> None:
        if size > _LARGE_BYTES and not self._holds:
            await self._slots.acquire()
            self._holds = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
    """A client that takes nothing from the environment and keeps no cookies. The caller closes it with `aclose`.

    `packed`: the peer may compress its answer. Compressed answers are unpacked in pieces while they are read, also without `packed`.
    httpx limits heads to 100 KiB.
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
    """The beginning of the unpacked body, and whether that is all of it. Sets no time limit: callers do. Raises httpx.HTTPError."""
    body = bytearray()
    async for piece in response.aiter_raw():
        if large is not None:
            await large.grown(len(body) + len(piece))
        body += piece[: max_bytes + 1 - len(body)]
        if len(body) > max_bytes:
            return bytes(memoryview(body)[:max_bytes]), False
    return bytes(body), True
