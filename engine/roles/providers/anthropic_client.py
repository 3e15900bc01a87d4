"""A turn by the anthropic client. Importing it takes seconds, so only `engine.roles.providers.anthropic` does, when a model is asked."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import httpx2
from anthropic import AnthropicError, AsyncAnthropic, DefaultAsyncHttpxClient, Timeout, omit, types
from anthropic.lib.streaming import AsyncMessageStream, ParsedMessageStreamEvent

from engine.roles.provider import BusyKind, ModelBusy, TurnCancelled
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic_answers import bounded
from engine.roles.providers.anthropic_failures import failure_of
from engine.roles.providers.anthropic_wire import messages_of, system_of, tools_of, turn_of, usage_of
from toolagent_service.contracts.model import ModelRequest, ModelTurn, Usage

_SERVICE = "https://api.anthropic.com"
_NO_KEY = "not-needed"
"""The client sends some key or takes one from the environment; an endpoint of one's own may need none."""

_WRITE_S = 60.0

# What the client lets through when a stream holds what it should not: it does not check what it reads.
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError)


class AnthropicClient:
    """As a provider does it, once its client is there. Blocks while it is made: certificates are read."""

    def __init__(self, options: ProviderOptions) -> None:
        self._options = options
        self._client = _Client(
            api_key=options.api_key or _NO_KEY,
            base_url=options.base_url or _SERVICE,
            timeout=Timeout(connect=options.connect_s, read=options.silence_s, write=_WRITE_S, pool=options.connect_s),
            # Temporal retries, by kind; a retry in here would be paid for and not counted.
            max_retries=0,
        )

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None]) -> ModelTurn:
        progress = _Progress(hear)
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
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[AsyncMessageStream[None]]:
        async with self._client.messages.stream(
            model=self._options.model,
            max_tokens=request.max_tokens,
            system=system_of(request) or omit,
            tools=tools_of(request) or omit,
            messages=messages_of(request),
        ) as stream:
            yield stream


class _Client(AsyncAnthropic):
    """Without the headers of `ANTHROPIC_CUSTOM_HEADERS`, which the client always takes: nothing of ours comes from there.

    Its answers are bounded.
    """

    def __init__(self, *, api_key: str, base_url: str, timeout: Timeout, max_retries: int) -> None:
        http = DefaultAsyncHttpxClient(
            base_url=base_url, timeout=timeout, headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bounded]}
        )
        super().__init__(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=max_retries, http_client=http)
        self._custom_headers = {}


class _Progress:
    """What of an answer has come."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self.usage: Usage | None = None
        self._begun = time.monotonic()
        self._characters = 0
        self._doing = "waiting for the model"
        self._arguments: dict[int, list[str]] = {}
        self._answer: types.Message | None = None

    def __str__(self) -> str:
        return f"{self._doing}: {time.monotonic() - self._begun:.0f} s, {self._characters:,} characters"

    def take(self, event: "ParsedMessageStreamEvent[None]") -> None:
        match event.type:
            case "message_start":
                self.usage = usage_of(event.message.usage)
                self._doing = "the model answers"
            case "content_block_start":
                self._doing = _doing(event.content_block)
            case "content_block_delta":
                self._take_delta(event.index, event.delta)
            case "message_stop":
                self._answer = event.message
                self.usage = usage_of(event.message.usage)
            case _:
                pass

    def turn(self) -> ModelTurn:
        """Raises ModelBusy when the answer is not whole."""
        if self._answer is None:
            kind = BusyKind.CUT if self.usage is not None else BusyKind.MALFORMED
            raise ModelBusy(kind, "The stream ended before the answer did.", usage=self.usage)
        turn = turn_of(self._answer)
        if turn.stop_reason == "tool_use":
            self._check_arguments()
        return turn

    def _take_delta(self, index: int, delta: types.RawContentBlockDelta) -> None:
        match delta.type:
            case "text_delta":
                self._characters += len(delta.text)
                self._hear(delta.text)
            case "thinking_delta":
                self._characters += len(delta.thinking)
            case "input_json_delta":
                self._characters += len(delta.partial_json)
                self._arguments.setdefault(index, []).append(delta.partial_json)
            case _:
                pass

    def _check_arguments(self) -> None:
        """The client takes half an object for a whole one. Raises ValueError."""
        for pieces in self._arguments.values():
            if written := "".join(pieces).strip():
                json.loads(written)


def _doing(block: object) -> str:
    match block:
        case types.ToolUseBlock(type="tool_use", name=name):
            return f"writing a call of {name[:60]}"
        case types.TextBlock(type="text"):
            return "writing"
        case _:
            return "thinking"


@asynccontextmanager
async def _beating(progress: _Progress, beat: Callable[[str], None], every_s: float) -> AsyncGenerator[None]:
    """Reports progress at once and then at intervals: a model may think for minutes, and the client hides keep-alive events."""

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
