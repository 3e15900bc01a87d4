"""The command that shows the state of the service, once or as a live table."""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import ExitCode, fail_if
from toolagent.cli.hosts import table_of_hosts
from toolagent.cli.interrupts import CtrlC
from toolagent.cli.render import (
    as_json,
    cell,
    moment,
    show_json,
    show_note,
    show_table,
    table_of,
    table_of_health,
    table_of_routes,
)
from toolagent.client.http import ServiceError, ToolAgentHttp
from toolagent.client.http_answers import is_away
from toolagent.contracts.hosts import HostListing
from toolagent.contracts.http import Health
from toolagent.contracts.records import Event
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.system import SystemStatus

__all__ = ["status"]

_SHORTEST_S = 0.2
_LONGEST = 200
"""Characters of an alert that are shown. `--json` has all of it."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The state of the service at one moment."""

    health: Health
    routes: tuple[ToolRoute, ...]
    system: SystemStatus
    hosts: HostListing

    @property
    def running(self) -> tuple[ToolRoute, ...]:
        return tuple(route for route in self.routes if route.state is not RunState.STOPPED or route.last_error)

    @property
    def document(self) -> JsonValue:
        return {
            "health": as_json(self.health),
            "system": as_json(self.system),
            "hosts": [*map(as_json, self.hosts.hosts)],
            "tools": [*map(as_json, self.routes)],
        }


@asking
def status(
    asked: Asked,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=_SHORTEST_S, help="Time between two updates of --watch.")] = 2.0,
) -> None:
    """Show the health of the service, its hosts, sessions, repairs and running tools. Exit code 1 if it is not healthy.

    With --watch it is a live table, which waits for a service that is away. In a pipe, each update is printed; with --json on one line.

    `toolagent status`

    `toolagent status --watch --every 5`
    """
    if watch:
        _watched(asked, every)
        raise typer.Exit(ExitCode.INTERRUPTED)
    seen = _seen(asked.service)
    if asked.json_output:
        show_json(seen.document)
    else:
        _show(seen)
        if not seen.running:
            show_note("No tool is running.")
    fail_if(seen.health.status != "ok", "The service is not ready; the checks say why.")


def _seen(service: ToolAgentHttp) -> _Seen:
    return _Seen(service.health(), service.routes(), service.system_status(), service.hosts())


def _show(seen: _Seen) -> None:
    for part in _parts(seen):
        show_table(part)


def _watched(asked: Asked, every_s: float) -> None:
    """Until the first Ctrl-C."""
    with CtrlC() as ctrl_c, _screen(json_output=asked.json_output) as screen:
        while not ctrl_c.is_pressed:
            try:
                screen.show(_seen(asked.service))
            except ServiceError as error:
                if not is_away(error):
                    raise
                screen.miss(str(error))
            ctrl_c.pause(every_s)


class _Lines:
    """Prints one update after the other. Stderr says once that the service is away."""

    def __init__(self, show: Callable[[_Seen], None]) -> None:
        self._show, self._is_away = show, False

    def show(self, seen: _Seen) -> None:
        self._is_away = False
        self._show(seen)

    def miss(self, why: str) -> None:
        if not self._is_away:
            show_note(f"{why} It is asked again.", "yellow")
        self._is_away = True


class _Screen:
    """Shows the last update, and for how long there was none."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._last: tuple[RenderableType, ...] = ()
        self._away_since: float | None = None

    def show(self, seen: _Seen) -> None:
        self._away_since, self._last = None, tuple(_spaced(seen))
        self._draw(cell(f"{datetime.now().astimezone():%H:%M:%S} · Ctrl-C ends", "dim"))

    def miss(self, why: str) -> None:
        self._away_since = self._away_since or time.monotonic()
        away_s = time.monotonic() - self._away_since
        self._draw(cell(f"The service has not answered for {away_s:.0f} s: {why} It is asked again; below is what it said last.", "red"))

    def _draw(self, head: Text) -> None:
        self._live.update(Group(head, *self._last), refresh=True)


@contextmanager
def _screen(*, json_output: bool) -> Generator[_Lines | _Screen]:
    console = Console(highlight=False)
    if json_output:
        yield _Lines(lambda seen: typer.echo(json.dumps(seen.document, ensure_ascii=True)))
    elif not console.is_terminal:
        yield _Lines(_show)
    else:
        with Live(console=console, auto_refresh=False, screen=False, vertical_overflow="crop") as live:
            yield _Screen(live)


def _spaced(seen: _Seen) -> Iterator[RenderableType]:
    for part in _parts(seen):
        yield from (Text(), part)


def _parts(seen: _Seen) -> Iterator[RenderableType]:
    """The tables, without empty ones."""
    system = seen.system
    yield table_of_health(seen.health)
    yield table_of(("what", "how many"), _counts(system))
    if seen.hosts.hosts:
        yield table_of_hosts(seen.hosts)
    if system.sessions.stop_unconfirmed:
        rows = ((one.session_id, one.group_id, str(one.attempts)) for one in system.sessions.stop_unconfirmed)
        yield table_of(("session that does not stop", "group", "failed stops"), rows)
    if system.under_repair:
        rows = ((cell(one.tool_id, "bold"), one.task_id, one.status.value) for one in system.under_repair)
        yield table_of(("under repair", "task", "state"), rows)
    if system.alerts:
        yield table_of(("alert", "of", "what"), map(_alert, system.alerts))
    if seen.running:
        yield table_of_routes(seen.running)


def _alert(alert: Event) -> tuple[str, str, str]:
    details = alert.details if isinstance(alert.details, dict) else {}
    item = details.get("item")
    said = (details.get("reason") or details.get("error"), json.dumps(item, ensure_ascii=False) if item is not None else None)
    of = details.get("session_id") or details.get("group_id") or alert.tool_id
    return moment(alert.at), str(of), " ".join(" ".join(str(one) for one in said if one).split())[:_LONGEST]


def _counts(system: SystemStatus) -> Iterator[tuple[str, str]]:
    hosts, groups, tasks = system.hosts, system.groups, system.coding_agent
    yield "tools", f"{system.tools.total}, {system.tools.active} active, {len(system.warm)} up"
    yield "hosts", f"{hosts.alive} alive, {hosts.draining} draining, {hosts.dead} dead"
    yield "groups", f"{groups.total}, {groups.with_lifecycle} with sessions"
    yield "sessions", ", ".join(f"{number} {state}" for state, number in system.sessions.living.items()) or "0"
    yield "tasks", f"{tasks.running_count} running, {tasks.queued_count} waiting, {len(system.under_repair)} of them repairs"
