"""What is true afterwards: how each call ended by every account there is, and what it did."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from temporalio.client import Client

from bench.chaos.callers import Asked, Callers
from bench.chaos.plan import KINDS, Door
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.http import Task
from toolagent.contracts.lanes import LaneListing

_END_S = 300.0
_SETTLE_S = 60.0
_PAUSE_S = 0.5
_AT_ONCE = 8
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Fate:
    """One call afterwards. `result` is the task's; `repeated` what the key answers now."""

    asked: Asked
    result: ToolResult | None
    repeated: ToolResult | None
    effects: int

    @property
    def outcome(self) -> str:
        if self.result is None:
            return "no result" if self.asked.accepted else "never taken"
        return "success" if self.result.status == "success" else (self.result.error_type or "error")

    @property
    def told(self) -> Sequence[ToolResult]:
        """Every result that somebody was told, in whatever way."""
        return [*self.asked.results, *(result for result in (self.result, self.repeated) if result)]

    @property
    def is_said_unsent(self) -> bool:
        return any(map(_says_not_sent, self.told))


async def fates_of(asked: Sequence[Asked], callers: Callers, urls: Mapping[Door, str], effects: Path) -> list[Fate]:
    """Waits until every accepted call has ended, with a bound. Everything has to be up again."""
    end = time.monotonic() + _END_S
    slots = asyncio.Semaphore(_AT_ONCE)
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:

        async def end_of(one: Asked) -> tuple[Asked, ToolResult | None, ToolResult | None]:
            async with slots:
                result = await _ended(http, f"{urls[one.call.door]}/tasks/{one.call_id}", end)
                # The key is asked again at the other door: both have to say the same.
                other = urls[Door.API if one.call.door is Door.UP else Door.UP]
                return one, result, await _repeated(http, other, one, callers) if result else None

        ends = await asyncio.gather(*map(end_of, asked))
    # Only now: a call that has ended has no more effects, and repeating its key must not have had one.
    done = await asyncio.to_thread(_count, effects)
    return [Fate(one, result, repeated, done[one.call.key]) for one, result, repeated in ends]


def _count(effects: Path) -> Counter[str]:
    return Counter(line for file in effects.iterdir() for line in file.read_text("utf-8").splitlines())


async def _ended(http: httpx.AsyncClient, task_url: str, end: float) -> ToolResult | None:
    while True:
        answer = await http.get(task_url)
        if answer.status_code == _NOT_FOUND:
            return None
        if answer.is_success and (task := Task.model_validate_json(answer.content)).result:
            return task.result
        if time.monotonic() > end:
            return None
        await asyncio.sleep(_PAUSE_S)


async def _repeated(http: httpx.AsyncClient, url: str, asked: Asked, callers: Callers) -> ToolResult:
    body = callers.body(asked.call, waits=True)
    answer = await http.post(f"{url}/run_tool", json=body, headers={"Idempotency-Key": asked.call.key})
    return ToolResult.model_validate_json(answer.content)


async def running_workflows(address: str, namespace: str, url: str) -> list[str]:
    """Those that still run after a while, but for the lanes of doors that are alive; the list of Temporal lags a little behind."""
    client = await Client.connect(address, namespace=namespace)
    end = time.monotonic() + _SETTLE_S
    while running := {one.id async for one in client.list_workflows("ExecutionStatus = 'Running'")} - await _lanes(url):
        if time.monotonic() > end:
            break
        await asyncio.sleep(_PAUSE_S)
    return sorted(running)


async def _lanes(url: str) -> set[str]:
    async with httpx.AsyncClient(timeout=60, trust_env=False) as http:
        answer = (await http.get(f"{url}/lanes")).raise_for_status()
    return {lane.workflow_id for lane in LaneListing.model_validate_json(answer.content).lanes}


def useless_tools(fates: Sequence[Fate]) -> list[str]:
    """Tools of which calls were accepted that nobody asked to cancel, and none succeeded: nothing was seen of them but failures."""
    counted = [fate for fate in fates if fate.asked.accepted and not fate.asked.cancels]
    calls = Counter(KINDS[fate.asked.call.kind].tool_id for fate in counted)
    good = {KINDS[fate.asked.call.kind].tool_id for fate in counted if fate.outcome == "success"}
    return [f"{tool_id} never succeeded in {number} calls" for tool_id, number in calls.items() if tool_id not in good]


def broken_promises(fate: Fate) -> list[str]:
    """What this call's fate says against us, each with the call's id."""
    kind, asked = KINDS[fate.asked.call.kind], fate.asked
    essences = {result.model_dump_json() for result in fate.told}
    success = fate.result is not None and fate.result.status == "success"
    faults = {
        "was accepted and has no result": asked.accepted and fate.result is None,
        f"has {len(essences)} different results": len(essences) > 1,
        f"had its effect {fate.effects} times": kind.once and fate.effects > 1,
        "succeeded without an effect": kind.acts and success and not fate.effects,
        f"was said not to have been sent and had its effect {fate.effects} times": fate.is_said_unsent and fate.effects > 0,
        "was cancelled although nobody asked for that": fate.outcome == ErrorType.CANCELLED and not asked.cancels,
        "was never taken and had an effect": not asked.accepted and fate.result is None and fate.effects > 0,
    }
    return [f"{asked.call_id} ({kind.name}) {fault}" for fault, is_so in faults.items() if is_so]


def _says_not_sent(result: ToolResult) -> bool:
    """Whether its caller may safely call again."""
    details = result.error.details if result.error else None
    return isinstance(details, dict) and details.get("sent") is False
