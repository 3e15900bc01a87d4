"""Calls by MCP clients: a task, a request by itself, or one of a session.

They ask again under the same key until they know the end.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import httpx
from pydantic import JsonValue

from bench.chaos.plan import Door, Kind
from bench.mcp.requests import SESSIONS, SINGLE, TASKS, greeting, mcp_request
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.idempotency import call_id_for_key

CLIENT = "chaos"
SERVER = "notes"
"""How `stdio_server.py` is called where it is imported."""

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("builtin", "echo", 10),
        Kind("reads", f"{SERVER}_say", 15, seconds=0.5),
        Kind("idempotent", f"{SERVER}_note_again", 30, acts=True, seconds=1.0),
        Kind("acts once", f"{SERVER}_note", 25, acts=True, once=True, seconds=0.5),
        Kind("acts once, slow", f"{SERVER}_note", 20, acts=True, once=True, seconds=2.5),
    )
}

_ASK_S, _PATIENCE_S, _PAUSE_S, _POLL_S = 30.0, 300.0, 0.3, 0.5
_LONGEST_PAUSE_S = 3.0
_AGAIN = {ErrorType.UNAVAILABLE, ErrorType.TIMEOUT}
"""After these a client asks again under the same key; when they are the call's end, it is told the same again."""

_NOT_FOUND = 404
_INVALID_PARAMS = -32602
_OVER = {"completed", "failed", "cancelled"}


class Way(StrEnum):
    TASK = "as a task"
    SINGLE = "by itself"
    SESSION = "in a session"


@dataclass(frozen=True, slots=True)
class PlannedVisit:
    key: str
    kind: str
    way: Way
    door: Door
    pause_s: float

    @property
    def call_id(self) -> str:
        return call_id_for_key(CLIENT, self.key)


def plan_visits(seed: int, calls: int) -> list[PlannedVisit]:
    """Every second one as a task."""
    chance = random.Random(f"visits {seed}")  # noqa: S311 - it has to be repeatable
    names, weights = list(KINDS), [kind.weight for kind in KINDS.values()]
    return [
        PlannedVisit(
            key=f"visit-{seed}-{number}",
            kind=chance.choices(names, weights)[0],
            way=Way.TASK if number % 2 else chance.choice((Way.SINGLE, Way.SESSION)),
            door=chance.choice(list(Door)),
            pause_s=chance.uniform(0, _LONGEST_PAUSE_S),
        )
        for number in range(calls)
    ]


@dataclass(slots=True)
class Visited:
    """What came of it, as its client saw it. `ends` are all results it was told, equal ones once; `wrongs` what may not happen."""

    call: PlannedVisit
    accepted: bool = False
    was_task: bool = False
    attempts: int = 0
    resumed: int = 0
    ends: list[JsonValue] = field(default_factory=list[JsonValue])
    wrongs: list[str] = field(default_factory=list[str])
    last: str = ""

    def note(self, end: JsonValue) -> None:
        if end not in self.ends:
            self.ends.append(end)


@dataclass(slots=True)
class _Session:
    """Of one client; any door goes on with it."""

    session_id: str = ""


class Visitors:
    """So many clients at once. `urls` are those of the doors."""

    def __init__(self, urls: Mapping[Door, str]) -> None:
        self._urls = urls

    async def visit_all(self, visits: Sequence[PlannedVisit], number: int) -> list[Visited]:
        """In the order of the plan."""
        visited = [Visited(visit) for visit in visits]
        waiting = iter(visited)
        async with self.connected(2 * number + 4) as http:

            async def client() -> None:
                session = _Session()
                for one in waiting:
                    await asyncio.sleep(one.call.pause_s)
                    await self._visit(http, one, session)

            await asyncio.gather(*(client() for _ in range(number)))
        return visited

    @asynccontextmanager
    async def connected(self, connections: int) -> AsyncGenerator[httpx.AsyncClient]:
        limits = httpx.Limits(max_connections=connections, keepalive_expiry=2)
        async with httpx.AsyncClient(timeout=_ASK_S, trust_env=False, limits=limits) as http:
            yield http

    async def repeated(self, http: httpx.AsyncClient, one: Visited, door: Door) -> JsonValue:
        """How the key ends now, asked at this door; None where it is not told."""
        message = await self._asked(http, door, Visited(one.call), *_call(one.call, SINGLE, is_task=False))
        return _end_of(message["result"]) if "result" in message else None

    async def task(self, http: httpx.AsyncClient, one: Visited) -> JsonValue:
        """How its task ends; None where nobody knows it, or it does not end in time."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            told = await self._looked_at(http, one)
            if told is None or told.get("status") in _OVER:
                return _end_of_task(told) if told else None
            await asyncio.sleep(_POLL_S)
        return None

    async def _visit(self, http: httpx.AsyncClient, one: Visited, session: _Session) -> None:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            one.attempts += 1
            if one.call.way is Way.SESSION:
                message = await self._asked_in_session(http, one, session)
            else:
                request = _call(one.call, SINGLE, is_task=one.call.way is Way.TASK)
                message = await self._asked(http, one.call.door, one, *request)
            if await self._is_told(http, one, message):
                return
            await asyncio.sleep(_PAUSE_S)

    async def _is_told(self, http: httpx.AsyncClient, one: Visited, message: Mapping[str, Any]) -> bool:
        """Whether the client knows how it ended."""
        result: dict[str, Any] | None = message.get("result")
        one.last = json.dumps(message)[:300]
        if result is None:
            return False
        if result.get("resultType") == "task":
            one.accepted = one.was_task = True
            if result["taskId"] != one.call.call_id:
                one.wrongs.append(f"its task is {result['taskId']}")
            if (end := await self.task(http, one)) is not None:
                one.note(end)
            # One that is not told in time is looked up afterwards.
            return True
        end = _end_of(result)
        if isinstance(end, dict) and end.get("type") in _AGAIN:
            return False
        one.accepted = True
        told = result.get("_meta", {}).get("toolagent/call_id")
        if told != one.call.call_id:
            one.wrongs.append(f"its result is that of {told}")
        one.note(end)
        return True

    async def _looked_at(self, http: httpx.AsyncClient, one: Visited) -> dict[str, Any] | None:
        """The task as it is; None where it is said not to be there."""
        request = mcp_request(SINGLE, "tasks/get", client=CLIENT, extensions=(TASKS,), taskId=one.call.call_id)
        message = await self._asked(http, one.call.door, one, request.body, request.headers)
        one.last = json.dumps(message)[:300]
        if message.get("error", {}).get("code") == _INVALID_PARAMS:
            if one.was_task:
                one.wrongs.append(f"its task was denied: {one.last}")
            return None
        return message.get("result", {})

    async def _asked_in_session(self, http: httpx.AsyncClient, one: Visited, session: _Session) -> dict[str, Any]:
        if not session.session_id:
            request = mcp_request(SESSIONS, "initialize")
            begin, _ = greeting(SESSIONS, CLIENT)
            try:
                opened = await http.post(self._mcp(one.call.door), content=begin, headers=_typed(request.headers))
            except httpx.TransportError as error:
                return {"failure": type(error).__name__}
            session.session_id = opened.headers.get("mcp-session-id", "")
            if not session.session_id:
                return {"failure": opened.text[:200]}
        body, headers = _call(one.call, SESSIONS, is_task=False)
        message = await self._asked(http, one.call.door, one, body, {**headers, "Mcp-Session-Id": session.session_id})
        if message.get("status") == _NOT_FOUND:
            one.wrongs.append("its session was lost")
            session.session_id = ""
        return message

    async def _asked(self, http: httpx.AsyncClient, door: Door, one: Visited, body: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """The message that answers, or why there is none. The rest of a stream that broke is asked for."""
        heard = _Heard()
        try:
            async with http.stream("POST", self._mcp(door), content=body, headers=_typed(headers)) as answer:
                await heard.hear(answer)
        except httpx.TransportError as error:
            heard.failure = type(error).__name__
        end = time.monotonic() + _PATIENCE_S
        while heard.message is None and heard.event_id and time.monotonic() < end:
            await asyncio.sleep(_PAUSE_S)
            again = {**headers, "Accept": "text/event-stream", "Last-Event-ID": heard.event_id}
            try:
                async with http.stream("GET", self._mcp(door), headers=again) as answer:
                    one.resumed += answer.is_success
                    await heard.hear(answer)
            except httpx.TransportError as error:
                heard.failure = type(error).__name__
        return {"status": heard.status, **(heard.message or {"failure": heard.failure})}

    def _mcp(self, door: Door) -> str:
        return f"{self._urls[door]}/mcp"


@dataclass(slots=True)
class _Heard:
    """`event_id` is that of the last event of a stream."""

    message: dict[str, Any] | None = None
    event_id: str = ""
    status: int = 0
    failure: str = ""

    async def hear(self, answer: httpx.Response) -> None:
        self.status = answer.status_code
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                self.event_id = line.removeprefix("id: ")
            elif (text := line.removeprefix("data: ")).startswith("{"):
                said: dict[str, Any] = json.loads(text)
                if "result" in said or "error" in said:
                    self.message = said
                    return


def _call(call: PlannedVisit, revision: str, *, is_task: bool) -> tuple[str, Mapping[str, str]]:
    kind = KINDS[call.kind]
    arguments: dict[str, JsonValue] = {"message": call.key, **({"seconds": kind.seconds} if kind.seconds else {})}
    request = mcp_request(
        revision,
        "tools/call",
        client=CLIENT,
        extensions=(TASKS,) if is_task else (),
        name=kind.tool_id,
        arguments=arguments,
        _meta={"toolagent/idempotency_key": call.key, "toolagent/caller_id": CLIENT},
    )
    return request.body, request.headers


def _typed(headers: Mapping[str, str]) -> dict[str, str]:
    return {**headers, "Content-Type": "application/json"}


def _end_of(result: Mapping[str, Any]) -> JsonValue:
    """What is the same however it is told: the tool's result, or our error."""
    if result.get("isError"):
        meta: dict[str, JsonValue] = result.get("_meta") or {}
        return meta.get("toolagent/error")
    structured: dict[str, JsonValue] = result.get("structuredContent") or {}
    return structured


def _end_of_task(task: Mapping[str, Any]) -> JsonValue:
    return task["error"]["data"] if "error" in task else _end_of(task.get("result", {}))
