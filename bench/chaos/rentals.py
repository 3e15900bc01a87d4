"""Who rents servers while processes are killed; a process that is killed itself, and forgets what it had."""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import httpx
from pydantic import JsonValue
from temporalio.client import Client
from temporalio.service import RPCError

from toolagent.client import names
from toolagent.contracts.sessions import GroupUse, SessionRun, SessionState, SessionView

GROUP = "runcomfy_lifecycle"
PATH = f"/groups/{GROUP}/sessions"
_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_RUN: dict[str, JsonValue] = {
    "workflow": {
        "nodes": [
            {"id": 1, "type": "LoadImage", "inputs": {"image": "dot.png"}},
            {"id": 2, "type": "SaveImage", "inputs": {"images": ["1", 0]}},
        ]
    },
    "images": [{"name": "dot.png", "base64": _DOT}],
}
_ASK_S = 60.0
_PATIENCE_S = 120.0
_PAUSE_S = 0.5
_MOST_RUNS = 2
_LONGEST_PAUSE_S = 2.0
_LATEST_END_S = 8.0


class Ending(StrEnum):
    """What becomes of a session after its runs."""

    STOPPED = "stopped by its caller"
    FORGOTTEN = "forgotten"
    TERMINATED = "its workflow terminated"
    USED = "used by a workflow"
    USER_TERMINATED = "used by a workflow that is terminated"


_WEIGHTS = {Ending.STOPPED: 50, Ending.FORGOTTEN: 15, Ending.TERMINATED: 10, Ending.USED: 10, Ending.USER_TERMINATED: 15}


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """`version` is of the workflow to launch with: in the ledger of the provider it says whose a server is."""

    number: int
    key: str
    runs: int
    ending: Ending
    pause_s: float
    end_after_s: float

    @property
    def version(self) -> str:
        return f"version-{self.number:04}"

    @property
    def params(self) -> dict[str, JsonValue]:
        return {"workflow_version_id": self.version}


def plan_sessions(seed: int, sessions: int) -> list[PlannedSession]:
    chance = random.Random(f"sessions {seed}")  # noqa: S311 - it has to be repeatable
    return [
        PlannedSession(
            number=number,
            key=f"chaos-{seed}-{number}",
            runs=chance.randint(0, _MOST_RUNS),
            ending=chance.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0],
            pause_s=chance.uniform(0, _LONGEST_PAUSE_S),
            end_after_s=chance.uniform(0, _LATEST_END_S),
        )
        for number in range(sessions)
    ]


class Renter:
    """Rents each planned session that no earlier life of this process has begun; so many at once."""

    def __init__(self, urls: Sequence[str], temporal: str, namespace: str, begun: Path) -> None:
        self._urls, self._temporal, self._namespace, self._begun = urls, temporal, namespace, begun

    async def rent(self, sessions: Sequence[PlannedSession], number: int) -> None:
        before = set(self._begun.read_text("utf-8").split()) if self._begun.exists() else set[str]()
        waiting = iter([one for one in sessions if one.key not in before])
        limits = httpx.Limits(max_connections=2 * number, keepalive_expiry=2)
        async with httpx.AsyncClient(timeout=_ASK_S, trust_env=False, limits=limits) as http:

            async def caller() -> None:
                for one in waiting:
                    await asyncio.sleep(one.pause_s)
                    self._note(one)
                    await self._rented(http, one)

            await asyncio.gather(*(caller() for _ in range(number)))

    def _note(self, one: PlannedSession) -> None:
        with self._begun.open("a", encoding="utf-8") as file:
            file.write(f"{one.key}\n")

    async def _rented(self, http: httpx.AsyncClient, one: PlannedSession) -> None:
        if one.ending in {Ending.USED, Ending.USER_TERMINATED}:
            await self._used(one)
            return
        url = self._urls[one.number % len(self._urls)]
        answer = await _asked(http, f"{url}{PATH}", {"params": one.params}, one.key)
        if answer is None or not answer.is_success:
            return
        view = SessionView.model_validate_json(answer.content)
        if view.state is not SessionState.READY:
            return
        for run in range(one.runs):
            await _asked(http, f"{url}{PATH}/{view.session_id}/run", {"params": _RUN, "key": f"{one.key}-{run}"})
        if one.ending is Ending.STOPPED:
            await _asked(http, f"{url}{PATH}/{view.session_id}/stop")
        elif one.ending is Ending.TERMINATED:
            await self._terminated(names.session_workflow(GROUP, view.session_id))

    async def _used(self, one: PlannedSession) -> None:
        use = GroupUse(group_id=GROUP, params=one.params, runs=(SessionRun(params=_RUN),) * one.runs)
        client = await self._connected()
        if client is None:
            return
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            with suppress(RPCError):
                await client.start_workflow(names.USE_GROUP, use.model_dump(mode="json"), id=f"use-{one.key}", task_queue=names.TASK_QUEUE)
                break
            await asyncio.sleep(_PAUSE_S)
        await asyncio.sleep(one.end_after_s)
        if one.ending is Ending.USER_TERMINATED:
            await self._terminated(f"use-{one.key}")

    async def _terminated(self, workflow_id: str) -> None:
        client = await self._connected()
        end = time.monotonic() + _PATIENCE_S
        while client is not None and time.monotonic() < end:
            with suppress(RPCError):
                await client.get_workflow_handle(workflow_id).terminate("chaos")
                return
            await asyncio.sleep(_PAUSE_S)

    async def _connected(self) -> Client | None:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            with suppress(RuntimeError, RPCError):
                return await Client.connect(self._temporal, namespace=self._namespace)
            await asyncio.sleep(_PAUSE_S)
        return None


async def _asked(
    http: httpx.AsyncClient, url: str, body: dict[str, JsonValue] | None = None, key: str | None = None
) -> httpx.Response | None:
    """The answer, once it is none of a service that is away."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        with suppress(httpx.TransportError):
            answer = await http.post(url, json=body, headers={"Idempotency-Key": key} if key else None)
            if not answer.is_server_error:
                return answer
            if url.endswith("/run") and answer.headers["content-type"] == "application/json":
                return answer
        await asyncio.sleep(_PAUSE_S)
    return None


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos.rentals", description=__doc__)
    for name in ("--seed", "--sessions", "--callers"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--temporal", "--namespace"):
        parser.add_argument(name, required=True)
    parser.add_argument("--begun", type=Path, required=True, help="the file in which its lives note which sessions they have begun")
    parser.add_argument("urls", nargs="+")
    asked = parser.parse_args(arguments)
    renter = Renter(asked.urls, asked.temporal, asked.namespace, asked.begun)
    asyncio.run(renter.rent(plan_sessions(asked.seed, asked.sessions), asked.callers))


if __name__ == "__main__":
    main(sys.argv[1:])
