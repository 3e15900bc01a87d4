"""Sends a turn to a client, at the turn's pace and with its fault."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request

from toolagent.testing.servers.answers import Event, as_events, as_message
from toolagent.testing.servers.scenario import FaultKind
from toolagent.testing.servers.script import Script, Step
from toolagent.testing.servers.serving import ConnectionCut

__all__ = ["Delivery", "WholeBody"]


@dataclass(frozen=True)
class WholeBody:
    """`length` is the declared length: more than is sent if the connection breaks."""

    body: AsyncIterator[bytes]
    length: int


class Delivery:
    """Sends one answer. It counts as served when its last part is handed over to a client that still listens."""

    def __init__(self, script: Script, step: Step, request: Request) -> None:
        self._script = script
        self._step = step
        self._request = request

    async def streamed(self) -> AsyncIterator[bytes]:
        """As server-sent events."""
        events = [*as_events(self._step.answer)]
        if await self._gone(self._delay):
            return
        pause, begun = self._step.seconds / max(1, len(events) - 1), time.monotonic()
        for place, event in enumerate(self._whole_or_half(events)):
            # By the clock, since the delays of pauses would add up.
            if await self._gone(begun + place * pause - time.monotonic()):
                return
            self._handed_over(event is events[-1])
            yield event.encoded()
        if self._kind is FaultKind.CUT:
            raise ConnectionCut

    def whole(self) -> WholeBody:
        """As one body."""
        body = json.dumps(as_message(self._step.answer), ensure_ascii=False).encode()
        sent = body if self._is_whole else body[: len(body) // 2]
        # A client notices a declared length that is larger than the body when the connection closes.
        length = len(sent) if self._kind is FaultKind.MALFORMED else len(body)
        return WholeBody(self._at_once(sent), length)

    async def _at_once(self, body: bytes) -> AsyncIterator[bytes]:
        if await self._gone(self._delay + self._step.seconds):
            return
        self._handed_over(self._is_whole)
        yield body
        if self._kind in {FaultKind.CUT, FaultKind.ENDED_EARLY}:
            raise ConnectionCut

    def _handed_over(self, is_last: bool) -> None:
        # Count before the client has everything: it may ask for the count at once.
        if is_last:
            self._script.served(self._step)

    def _whole_or_half(self, events: Sequence[Event]) -> Sequence[Event]:
        half = events[: max(2, len(events) // 2)]
        match self._kind:
            case FaultKind.CUT | FaultKind.ENDED_EARLY:
                return half
            case FaultKind.MALFORMED:
                return [*half, Event("content_block_delta", '{"type": "content_block_delta", "index": 0, "delta": {"ty')]
            case FaultKind.ERROR_EVENT:
                message = (self._step.fault and self._step.fault.message) or "Overloaded"
                error = json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": message}})
                return [*half, Event("error", error)]
            case _:
                return events

    @property
    def _kind(self) -> FaultKind | None:
        return self._step.fault.kind if self._step.fault else None

    @property
    def _is_whole(self) -> bool:
        return self._kind in {None, FaultKind.SLOW}

    @property
    def _delay(self) -> float:
        return self._step.fault.seconds if self._step.fault and self._kind is FaultKind.SLOW else 0

    async def _gone(self, seconds: float) -> bool:
        """Waits for so many seconds. True at once if the client hangs up."""
        # Starlette also ends a stream without a listener, but not with every server version at once.
        try:
            async with asyncio.timeout(seconds):
                while (await self._request.receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True
