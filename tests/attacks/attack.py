"""What an attack is: something done to a running service, and what has to hold meanwhile and after."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import httpx
from pydantic import JsonValue

from tests.attacks.peer import Peer
from tests.system.service_process import ServiceProcess

__all__ = ["Attack", "Kind", "Target", "broken", "expect"]

PATIENCE_S = 30.0
"""A call that takes longer than this has not been answered."""


@dataclass(slots=True)
class Target:
    """The service that is attacked, with what the attacks need beside it. `is_long` asks for the full size."""

    service: ServiceProcess
    data: Path
    peer: Peer
    is_long: bool = True
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.service.api_url, timeout=PATIENCE_S, trust_env=False)

    def call(self, tool_id: str, params: Mapping[str, JsonValue] | None = None, **more: JsonValue) -> httpx.Response:
        """Raises AssertionError when no answer comes within `PATIENCE_S`."""
        return self.post("/run_tool", {"tool_id": tool_id, "params": dict(params or {}), **more})

    def post(self, path: str, body: JsonValue) -> httpx.Response:
        return self.ask("POST", path, json=body)

    def ask(
        self, method: str, path: str, *, json: JsonValue = None, content: bytes | None = None, headers: object = None
    ) -> httpx.Response:
        given: dict[str, str] | list[tuple[str, str]] = headers if isinstance(headers, dict | list) else {}
        try:
            return self.http.request(method, path, json=json, content=content, headers=given)
        except httpx.TimeoutException:
            broken(f"no answer to {method} {path} within {PATIENCE_S:g} s")


@dataclass(frozen=True, slots=True)
class Attack:
    """`run` does it and returns the answer in a few words; it raises AssertionError with what did not hold.

    `may_refuse`: other callers may be refused meanwhile (a full disk). `is_load`: it keeps the machine busy by right, so that others are
    slower. `in_ci`: it is short, and leaves the service well enough for the next.
    """

    name: str
    what: str
    run: Callable[[Target], str]
    may_refuse: bool = False
    is_load: bool = False
    in_ci: bool = True


@dataclass(frozen=True, slots=True)
class Kind:
    """Attacks of one kind, which share a service with these `settings` (named without prefix).

    `around` wraps the life of the service: it gets the folder that the service will live in, and gives settings besides.
    """

    name: str
    attacks: tuple[Attack, ...]
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    around: Callable[[Path], AbstractContextManager[Mapping[str, str]]] | None = None


def broken(what: str) -> NoReturn:
    """For what has to hold and does not."""
    raise AssertionError(what)


def expect(holds: object, what: str) -> None:
    """Raises AssertionError with `what` unless it holds."""
    if not holds:
        broken(what)
