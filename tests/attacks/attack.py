"""The definition of an attack: an action on a running service, and what must hold during and after it."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

import httpx

from tests.attacks.peer import Peer
from tests.attacks.verdict import QUICK_S
from tests.system.service_process import ServiceProcess

__all__ = ["Attack", "Kind", "Target", "answered", "at_once", "broken", "expect"]

AnswerT = TypeVar("AnswerT")

Headers = dict[str, str] | list[tuple[str, str]]

PATIENCE_S = 30.0
"""A call that takes longer than this has not been answered."""


@dataclass(slots=True)
class Target:
    """The attacked service, with the attacks' own servers. `is_long` asks for the full size."""

    service: ServiceProcess
    data: Path
    peer: Peer
    is_long: bool = True
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        # All who ask at once have a connection of their own: else they would wait for each other before they ask.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self.http = httpx.Client(base_url=self.service.api_url, timeout=PATIENCE_S, trust_env=False, limits=limits)

    def call(self, tool_id: str, params: Mapping[str, object] | None = None, **more: object) -> httpx.Response:
        """Raises AssertionError if there is no answer within `PATIENCE_S`."""
        return self.post("/run_tool", {"tool_id": tool_id, "params": dict(params or {}), **more})

    def post(self, path: str, body: object) -> httpx.Response:
        return self.ask("POST", path, json=body)

    def ask(
        self, method: str, path: str, *, json: object = None, content: bytes | None = None, headers: Headers | None = None
    ) -> httpx.Response:
        try:
            return self.http.request(method, path, json=json, content=content, headers=headers)
        except httpx.TimeoutException:
            broken(f"no answer to {method} {path} within {PATIENCE_S:g} s")


@dataclass(frozen=True, slots=True)
class Attack:
    """`run` makes the attack and returns the answer in a few words; it raises AssertionError for a property that did not hold.

    `may_refuse`: other callers may be refused meanwhile (a full disk). `is_load`: it uses the machine legitimately, so other calls are
    slower; `quick_s` limits their delay, in seconds. `in_ci`: it is short, and leaves the service usable for the next one. `has_middle`:
    SIGTERM during it is tried.
    """

    name: str
    what: str
    run: Callable[[Target], str]
    may_refuse: bool = False
    is_load: bool = False
    quick_s: float = QUICK_S
    in_ci: bool = True
    has_middle: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """Attacks of one kind, which share a service with these `settings` (named without prefix).

    `around` wraps the life of the service: it gets the folder that the service will live in and the bad peer, and gives settings besides.
    """

    name: str
    attacks: tuple[Attack, ...]
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    around: Callable[[Path, Peer], AbstractContextManager[Mapping[str, str]]] | None = None


def broken(what: str) -> NoReturn:
    """Raised if a required property does not hold."""
    raise AssertionError(what)


def expect(holds: object, what: str) -> None:
    """Raises AssertionError with `what` unless it holds."""
    if not holds:
        broken(what)


def answered(answer: httpx.Response, allowed: Collection[int]) -> str:
    """The status and the error type as text. Raises AssertionError unless the status is one of these."""
    expect(answer.status_code in allowed, f"HTTP {answer.status_code}: {answer.text[:200]}")
    said: dict[str, object] = answer.json() if "json" in answer.headers.get("Content-Type", "") else {}
    return f"{answer.status_code} {said.get('error_type') or said.get('type') or ''}".strip()


def at_once(act: Callable[[], AnswerT], times: int, callers: int) -> list[AnswerT]:
    """The results of repeated calls by several callers."""
    with ThreadPoolExecutor(callers) as pool:
        return [one.result() for one in [pool.submit(act) for _ in range(times)]]
