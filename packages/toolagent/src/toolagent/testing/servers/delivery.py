"""A turn on its way to a client, at its pace and with its fault."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from starlette.requests import Request

from toolagent.testing.servers.answers import Event, as_events, as_message
from toolagent.testing.servers.scenario import Fault, FaultKind
from toolagent.testing.servers.script import Script, Step
from toolagent.testing.servers.serving import ConnectionCut

__all__ = ["Delivery", "WholeBody"]


@dataclass(frozen=True)
class WholeBody:
    """`length` is what the head declares: more than is sent, where the connection is to break."""

    body: AsyncIterator[bytes]
    length: int


class Delivery:
    """An answer on its way; it counts as served when its last part is handed over and nobody has hung up by then."""

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
            # By the clock: what each pause takes too long would add up.
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
        # Who declares more than is sent is noticed when the connection closes.
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
        # Before the client can know that it has all, or it might ask for the count too soon.
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
                return [*half, Event("error", _error_event(self._step.fault))]
            case _:
                return events

    @property
    def _kind(self) -> FaultKind | None:
        return self._step.fault.kind if self._step.fault else None

    @property
    def _is_whole(self) -> bool:
        return self._kind is None or self._kind is FaultKind.SLOW

    @property
    def _delay(self) -> float:
        return self._step.fault.seconds if self._step.fault and self._step.fault.kind is FaultKind.SLOW else 0

    async def _gone(self, seconds: float) -> bool:
        """Whether the client hangs up, or has; else it is waited for so long."""
        # Starlette ends a stream that nobody hears too; but which servers tell it at once depends on their version.
        try:
            async with asyncio.timeout(seconds):
                while (await self._request.receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True


def _error_event(fault: Fault | None) -> str:
    message = (fault.message if fault else None) or "Overloaded"
    return json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": message}})
