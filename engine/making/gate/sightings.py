"""Observes a candidate on trial: the hosts it asks for, and the end of its processes."""

import asyncio
import re
from datetime import datetime

from engine.making.gate.subject import Account
from engine.runtimes.auditing.audit import Audit
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sandbox import SandboxAccount

_HOST = re.compile(r"(\S+:[0-9]{1,5}): ")


class Sightings:
    """An Audit that also passes entries on, and a RouteStore that keeps routes, because they belong to no version in use."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._hosts: dict[str, None] = {}
        self._unnamed: dict[str, None] = {}
        self._sandbox: SandboxAccount | None = None
        self._calls = 0
        self._is_withheld = False
        self._up: dict[str, tuple[int | None, datetime | None]] = {}
        self._killed: set[tuple[int | None, datetime | None]] = set()
        self._died: set[tuple[int | None, datetime | None]] = set()
        self._states: dict[str, RunState] = {}
        self._changed = asyncio.Condition()

    def note(self, entry: AuditEntry) -> None:
        """An Audit."""
        # After a thousand connections in one run, the rest is only counted and has no host.
        asked = dict.fromkeys(found[1] for refusal in entry.refusals if (found := _HOST.match(refusal)))
        (self._unnamed if self._is_withheld else self._hosts).update(asked)
        self._sandbox = entry.sandbox or self._sandbox
        self._calls += entry.action == "call"
        self._audit.note(entry)

    async def save(self, route: ToolRoute, version: str) -> None:  # noqa: ARG002 - the protocol's
        """A RouteStore."""
        process = self._up.pop(route.tool_id, None)
        if route.state is RunState.RUNNING:
            self._up[route.tool_id] = route.pid, route.started_at
        elif route.state is RunState.ERROR and process is not None and process not in self._killed:
            self._died.add(process)  # once, however many tools share it
        async with self._changed:
            self._states[route.tool_id] = route.state
            self._changed.notify_all()

    def withhold(self) -> None:
        """From now on, it is only noted that other hosts are asked for: their names and number could reveal the input."""
        self._is_withheld = True

    def will_be_killed(self, tool_id: str) -> None:
        if process := self._up.get(tool_id):
            self._killed.add(process)

    async def gone(self, tool_id: str) -> None:
        """Waits until the tool does not run."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._states.get(tool_id) is not RunState.RUNNING)

    def account(self) -> Account:
        # A host that was seen before may be named.
        unnamed = bool(self._unnamed.keys() - self._hosts.keys())
        return Account(tuple(self._hosts), unnamed, len(self._died), self._calls, self._sandbox)
