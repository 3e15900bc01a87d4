"""Waits until a launched server can serve, and makes sure that no other program answers for it."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import httpx

from engine.network.ports import listens
from engine.runtimes.http.exchange import Health, HttpExchange
from engine.runtimes.process.processes import Process
from engine.runtimes.runtime import Vitals
from toolagent.contracts.sources import HttpSource

_FASTEST_LOOK_S = 0.01
_SLOWEST_LOOK_S = 0.2
_LATE_BY = 0.1
"""The longest delay until a start is noticed, as a share of the start's duration."""

_ASK_S = 2.0
IDLE_ASK_S = 1.0
_OK = 200
_DESCRIPTION = "/openapi.json"
_UNDECLARED = frozenset({HttpSource.model_fields["health_path"].default, _DESCRIPTION})
"""Paths that are asked if no health path is declared: any answer below 500, also a redirect or 401, means that the server is up."""

_NOT_FOUND = 404
_SERVER_ERROR = 500


class Ready:
    """The server serves."""


class Exited:
    """The server ended before it served."""


class NotOurs:
    """Another program answers on the port."""


@dataclass(frozen=True, slots=True)
class Unhealthy:
    """The server lives but does not serve. `last` is its last answer."""

    waited_s: float
    last: str


Readiness: TypeAlias = Ready | Exited | NotOurs | Unhealthy


async def await_ready(process: Process, endpoint: str, health_path: str, http: HttpExchange, timeout_s: float) -> Readiness:
    """Asks the health path until the server serves.

    Only the process can answer at a unix socket; for a port, the owner is checked.
    """
    began, last = time.monotonic(), "no answer"
    try:
        async with asyncio.timeout(timeout_s):
            while not process.has_ended:
                health = await http.health(endpoint, health_path, _ASK_S)
                last = f"status {health.status}" if health else last
                if health and await serves(health, health_path, endpoint, http):
                    return await _whose(process, endpoint)
                await _pause(process, min(max((time.monotonic() - began) * _LATE_BY, _FASTEST_LOOK_S), _SLOWEST_LOOK_S))
    except TimeoutError:
        return Unhealthy(timeout_s, last)
    return Exited()


async def serves(health: Health, path: str, endpoint: str, http: HttpExchange) -> bool:
    """Whether this answer of the health path means that the tool can serve: 200, or anything below 500 if the path was not declared.

    For a 404, any answer below 500 to `/` counts.
    """
    if health.status == _NOT_FOUND:
        root = await http.health(endpoint, "/", _ASK_S)
        return root is not None and root.status < _SERVER_ERROR
    return health.status == _OK or (path in _UNDECLARED and health.status < _SERVER_ERROR)


async def is_idle(endpoint: str, path: str, http: HttpExchange) -> bool:
    """Whether the tool reports 0 active requests. A tool that does not report may still work on a cancelled one."""
    health = await http.health(endpoint, path, IDLE_ASK_S)
    return health is not None and health.status == _OK and health.active == 0


async def vitals_of(endpoint: str, path: str, http: HttpExchange, timeout_s: float) -> Vitals:
    """The health of a tool that serves already."""
    health = await http.health(endpoint, path, timeout_s)
    if health is None:
        return Vitals(is_well=False, said=f"{path} did not answer within {timeout_s:g} s")
    if not await serves(health, path, endpoint, http):
        return Vitals(is_well=False, said=f"{path} answered {health.status}")
    return Vitals(is_well=True, holds=(health.active or 0) + (health.sessions or 0))


async def _whose(process: Process, endpoint: str) -> Readiness:
    port = httpx.URL(endpoint).port
    ours = port is None or await asyncio.to_thread(listens, process.pid, port)
    if process.has_ended:
        return Exited()
    return Ready() if ours else NotOurs()


async def _pause(process: Process, seconds: float) -> None:
    """Sleeps, at most until the process ends."""
    with suppress(TimeoutError):
        await asyncio.wait_for(process.exited(), seconds)
