"""Bounds what a model's endpoint answers: its client reads errors and redirects whole, and has httpx2 unpack without a bound."""

from collections.abc import AsyncIterator
from typing import cast

import httpx2

from toolagent.client.bounded_answers import unpacked
from toolagent.core.calls.unpacking import BoundedBody, bounded_body

_MAX_BYTES = 32 * 1024 * 1024
"""Of one turn: an event of some 200 bytes for a few characters, and 128,000 tokens."""

_MAX_ERROR_BYTES = 1024 * 1024


async def bounded(response: httpx2.Response) -> None:
    """A hook for answers. Reading one that is too large, or that cannot be unpacked, raises BodyRefused."""
    limit = _MAX_BYTES if response.is_success else _MAX_ERROR_BYTES
    body = bounded_body(response.headers, limit, is_redirect=response.has_redirect_location)
    if body is not None:
        response.stream = _Stream(cast("httpx2.AsyncByteStream", response.stream), body)


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, body: BoundedBody) -> None:
        self._inner, self._body = inner, body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in unpacked(self._body, self._inner):
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
