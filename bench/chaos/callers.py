"""Callers who ask again under the same key until they know how it ended, or what to follow; some of them change their minds."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from pydantic import JsonValue

from bench.chaos.plan import KINDS, Door, PlannedCall
from toolagent.contracts.calls import ToolResult
from toolagent.core.calls.idempotency import call_id_for_key

_ASK_S = 30.0
_PATIENCE_S = 120.0
_PAUSE_S = 0.3
_ACCEPTED = 202
_AGAIN = {500, 503, 504}
"""After these a caller asks again under the same key; when they are the call's end, it is told the same again."""


@dataclass(slots=True)
class Asked:
    """What came of one planned call, as its callers saw it. `results` are all results they were told, equal ones once; `is_cancelled`
    says that the service took a request to end it, `cancels` how often that was asked."""

    call: PlannedCall
    accepted: bool = False
    attempts: int = 0
    cancels: int = 0
    is_cancelled: bool = False
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    last: str = ""

    @property
    def call_id(self) -> str:
        return call_id_for_key(None, self.call.key)


class Callers:
    """So many ask at once, in the order of the plan. `urls` are those of the doors, `effects` a folder that tools write to."""

    def __init__(self, urls: Mapping[Door, str], effects: Path) -> None:
        self._urls, self._effects = urls, effects

    async def ask_all(self, calls: Sequence[PlannedCall], number: int) -> list[Asked]:
        asked = [Asked(call) for call in calls]
        waiting = iter(asked)
        limits = httpx.Limits(max_connections=2 * number + 4, keepalive_expiry=2)
        async with httpx.AsyncClient(timeout=_ASK_S, trust_env=False, limits=limits) as http:

            async def caller() -> None:
                for one in waiting:
                    await asyncio.sleep(one.call.pause_s)
                    await asyncio.gather(self._change_mind(http, one), *(self._ask(http, one) for _ in range(one.call.twins)))

            await asyncio.gather(*(caller() for _ in range(number)))
        return asked

    def body(self, call: PlannedCall, *, waits: bool) -> dict[str, JsonValue]:
        kind = KINDS[call.kind]
        params: dict[str, JsonValue] = {"message": call.key}
        if kind.acts:
            params |= {"effects": str(self._effects), "seconds": kind.seconds}
        return {"tool_id": kind.tool_id, "params": params, "mode": "sync" if waits else "async"}

    async def _ask(self, http: httpx.AsyncClient, asked: Asked) -> None:
        end = time.monotonic() + _PATIENCE_S
        body, headers = self.body(asked.call, waits=asked.call.waits), {"Idempotency-Key": asked.call.key}
        while time.monotonic() < end:
            asked.attempts += 1
            try:
                answer = await http.post(f"{self._urls[asked.call.door]}/run_tool", json=body, headers=headers)
            except httpx.TransportError as error:
                asked.last = type(error).__name__
            else:
                asked.last = f"{answer.status_code} {answer.text[:200]}"
                if _note(asked, answer):
                    return
            await asyncio.sleep(_PAUSE_S)

    async def _change_mind(self, http: httpx.AsyncClient, asked: Asked) -> None:
        """Ask for the end of the call until the service has taken that, or says that the call has ended."""
        if asked.call.cancel_after_s is None:
            return
        await asyncio.sleep(asked.call.cancel_after_s)
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            asked.cancels += 1
            with suppress(httpx.TransportError):
                answer = await http.post(f"{self._urls[asked.call.door]}/tasks/{asked.call_id}/cancel")
                # One that has not been heard of may be on the way: its callers ask for as long as we do.
                if answer.is_success:
                    asked.is_cancelled = True
                    return
            await asyncio.sleep(_PAUSE_S)


def _note(asked: Asked, answer: httpx.Response) -> bool:
    """Whether there is nothing more to ask."""
    if answer.status_code in _AGAIN or not answer.headers["content-type"].startswith("application/json"):
        return False
    asked.accepted = True
    if answer.status_code != _ACCEPTED and (result := ToolResult.model_validate_json(answer.content)) not in asked.results:
        asked.results.append(result)
    return True
