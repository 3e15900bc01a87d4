"""A turn by the anthropic client.

Importing it takes seconds, so only `engine.roles.providers.anthropic` does, at the first request.

The client only sends and reads the raw stream: building its own objects of each event takes longer than everything else.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import httpx2
from anthropic import AnthropicError, AsyncAnthropic, AsyncStream, DefaultAsyncHttpxClient, Timeout, types
from pydantic_core import to_json

from engine.roles.provider import BusyKind, ModelBusy, TurnCancelled
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic_events import AnswerSoFar
from engine.roles.providers.anthropic_failures import failure_of
from engine.roles.providers.anthropic_wire import messages_of, system_of, tools_of
from toolagent.client.bounded_answers import unpacked
from toolagent.core.calls.unpacking import BoundedBody, bounded_body
from toolagent_service.contracts.model import ModelRequest, ModelTurn

_SERVICE = "https://api.anthropic.com"
_NO_KEY = "not-needed"
"""Sent if no key is set: without one the client takes a key from the environment."""

_WRITE_S = 60.0

# Errors of reading a malformed stream: the client does not validate events.
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError)

_MAX_BYTES = 32 * 1024 * 1024
"""The largest answer: 128,000 tokens, in events of some 200 bytes for a few characters each."""

_MAX_ERROR_BYTES = 1024 * 1024


class AnthropicClient:
    """The loaded part of the provider. Making one blocks, because it reads certificates."""

    def __init__(self, options: ProviderOptions) -> None:
        self._options = options
        self._client = _Client(
            api_key=options.api_key or _NO_KEY,
            base_url=options.base_url or _SERVICE,
            timeout=Timeout(connect=options.connect_s, read=options.silence_s, write=_WRITE_S, pool=options.connect_s),
            # Temporal retries, by kind. A retry by the client would cost money that nothing counts.
            max_retries=0,
        )

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None]) -> ModelTurn:
        progress = AnswerSoFar(hear)
        try:
            async with _beating(progress, beat, self._options.beat_s), self._stream(request) as stream:
                async for event in stream:
                    progress.take(event)
            return progress.turn()
        except asyncio.CancelledError as cancelled:
            if progress.usage is None:
                raise
            raise TurnCancelled(progress.usage) from cancelled
        except httpx2.TimeoutException as error:
            raise ModelBusy(BusyKind.TIMEOUT, f"The model sent nothing for {self._options.silence_s:g} s.", usage=progress.usage) from error
        except httpx2.HTTPError as error:
            raise ModelBusy(BusyKind.CUT, f"The connection to the model broke: {error}", usage=progress.usage) from error
        except (AnthropicError, *_UNREADABLE) as error:
            raise failure_of(error, self._options, progress.usage) from error

    async def aclose(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[AsyncStream[object]]:
        system, tools = system_of(request), tools_of(request)
        body = {
            "model": self._options.model,
            "max_tokens": request.max_tokens,
            **({"system": system} if system else {}),
            **({"tools": tools} if tools else {}),
            "messages": messages_of(request),
            "stream": True,
        }
        # The body is bytes, because the client walks through objects value by value. Events of the type `object` stay raw JSON.
        stream = await self._client.post(
            "/v1/messages", cast_to=types.Message, content=to_json(body), stream=True, stream_cls=AsyncStream[object]
        )
        async with stream:
            yield stream


class _Client(AsyncAnthropic):
    """Bounds its answers, and ignores the headers of `ANTHROPIC_CUSTOM_HEADERS`."""

    def __init__(self, *, api_key: str, base_url: str, timeout: Timeout, max_retries: int) -> None:
        http = DefaultAsyncHttpxClient(
            base_url=base_url, timeout=timeout, headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bounded]}
        )
        super().__init__(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=max_retries, http_client=http)
        self._custom_headers = {}


@asynccontextmanager
async def _beating(progress: AnswerSoFar, beat: Callable[[str], None], every_s: float) -> AsyncGenerator[None]:
    """Reports progress at once and at intervals: a model may think for minutes, and the client hides keep-alive events."""

    async def beats() -> None:
        while True:
            beat(str(progress))
            await asyncio.sleep(every_s)

    beating = asyncio.create_task(beats())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])


async def bounded(response: httpx2.Response) -> None:
    """Bounds an answer, which the client would read and unpack without limit.

    Reading an answer that is too large, or that cannot be unpacked, raises BodyRefused.
    """
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
