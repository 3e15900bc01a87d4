"""Hooks for httpx that limit the body of every answer, also of redirects, because httpx unpacks without a limit.

Use them as `event_hooks={"response": [...]}`. They remove `Content-Encoding`, so httpx has nothing to unpack.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import cast

import httpx

from toolagent.core.calls.unpacking import BodyRefused, BoundedBody, bounded_body

__all__ = ["AS_SENT", "UNBOUNDED", "BoundedAnswers", "SyncBoundedAnswers", "unpacked"]

AS_SENT = "headers_as_sent"
"""The extension of an answer with its original headers."""

UNBOUNDED = {"is_unbounded": True}
"""The extensions of a request whose successful answer may have any length, because it is streamed."""


class BoundedAnswers:
    """For asynchronous clients. Reading an answer of more than `max_bytes`, or one that cannot be unpacked, raises DecodingError.

    `keeps_unknown`: bodies with another encoding are returned packed.
    """

    def __init__(self, max_bytes: int | None = None, *, keeps_unknown: bool = False) -> None:
        self._max_bytes, self._keeps_unknown = max_bytes, keeps_unknown

    async def __call__(self, response: httpx.Response) -> None:
        body = _bounded(response, self._max_bytes, keeps_unknown=self._keeps_unknown)
        if body is not None:
            response.stream = _Stream(response.request, cast("httpx.AsyncByteStream", response.stream), body)


class SyncBoundedAnswers:
    """As `BoundedAnswers`, for synchronous clients."""

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes

    def __call__(self, response: httpx.Response) -> None:
        body = _bounded(response, self._max_bytes)
        if body is not None:
            response.stream = _SyncStream(response.request, cast("httpx.SyncByteStream", response.stream), body)


async def unpacked(body: BoundedBody, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Raises BodyRefused."""
    async for chunk in chunks:
        for piece in body.pieces(chunk):
            yield piece
            # A chunk may have a thousand pieces: let other tasks run between them.
            await asyncio.sleep(0)
        if body.is_full:
            return
    body.end()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, request: httpx.Request, inner: httpx.AsyncByteStream, body: BoundedBody) -> None:
        self._request, self._inner, self._body = request, inner, body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in unpacked(self._body, self._inner):
                yield piece
        except BodyRefused as refused:
            raise httpx.DecodingError(str(refused), request=self._request) from refused

    async def aclose(self) -> None:
        await self._inner.aclose()


class _SyncStream(httpx.SyncByteStream):
    def __init__(self, request: httpx.Request, inner: httpx.SyncByteStream, body: BoundedBody) -> None:
        self._request, self._inner, self._body = request, inner, body

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._inner:
                yield from self._body.pieces(chunk)
                if self._body.is_full:
                    return
            self._body.end()
        except BodyRefused as refused:
            raise httpx.DecodingError(str(refused), request=self._request) from refused

    def close(self) -> None:
        self._inner.close()


def _bounded(response: httpx.Response, max_bytes: int | None, *, keeps_unknown: bool = False) -> BoundedBody | None:
    if "content-encoding" in response.headers:
        response.extensions[AS_SENT] = response.headers.copy()
    elif max_bytes is None and not response.has_redirect_location:
        return None
    is_unbounded = response.is_success and response.request.extensions.get("is_unbounded")
    return bounded_body(
        response.headers,
        None if is_unbounded else max_bytes,
        is_redirect=response.has_redirect_location,
        keeps_unknown=keeps_unknown,
    )
