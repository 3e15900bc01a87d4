"""The commands about the machines that run tools."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.table import Table

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import Interrupted, fail_if
from toolagent.cli.follow import Changes
from toolagent.cli.interrupts import CtrlC
from toolagent.cli.options import commands
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import Cell, cell, moment, show_note, show_plain, show_table, table_of
from toolagent.client.http import ServiceError, ToolAgentHttp
from toolagent.client.http_answers import is_away
from toolagent.contracts.hosts import Host, HostDrain, HostListing

__all__ = ["hosts", "table_of_hosts"]

_LOOK_S = 0.5

hosts = commands("The machines that run tools.")


@hosts.command("list")
@asking
def list_hosts(asked: Asked) -> None:
    """List the hosts, with their running calls, tools and sessions.

    `toolagent hosts list`
    """
    asked.show(asked.service.hosts(), lambda found: show_table(table_of_hosts(found)))


@hosts.command("drain")
@asking
def drain(
    asked: Asked,
    host: Annotated[str, typer.Argument(help="The id of a host, as `toolagent hosts list` shows it.", show_default=False)],
    wait: Annotated[bool, typer.Option("--wait", help="Follow until nothing is left on it.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Let it take calls again.")] = False,
) -> None:
    """Drain a host: it takes no new calls, finishes running calls, and stops its tools. A restart of the host does not end the drain.

    Sessions of groups on this host keep their tools until they end. With --wait, exit code 0 means that the host can be stopped.

    `toolagent hosts drain host-1 --wait`

    `toolagent hosts drain host-1 --undo`
    """
    if undo and wait:
        raise ParameterError("--undo has nothing to wait for.")
    state = asked.service.undrain_host(host) if undo else asked.service.drain_host(host)
    for warning in state.warnings:
        show_note(f"warning: {warning}", "yellow")
    state = _drained(asked.service, state) if wait else state
    asked.show(state, lambda state: show_plain(_told(state)))
    fail_if(wait and not state.is_drained, "Another command ended the drain.")


def table_of_hosts(found: HostListing) -> Table:
    return table_of(("host", "state", "draining", "since", "slots", "calls", "tools", "sessions"), map(_row, found.hosts))


def _drained(service: ToolAgentHttp, state: HostDrain) -> HostDrain:
    """Waits until the host is drained, or its drain is ended. Raises Interrupted on Ctrl-C; the host goes on draining."""
    host, said = state.host.host, Changes()
    with CtrlC() as ctrl_c:
        while not state.is_drained and state.host.draining_since is not None:
            if ctrl_c.is_pressed:
                raise Interrupted(f"{host} goes on draining. Follow it: toolagent hosts drain {host} --wait")
            said.show(_told(state))
            ctrl_c.pause(_LOOK_S)
            try:
                state = service.drain_of(host)
            except ServiceError as error:
                if not is_away(error):
                    raise
                said.show("The service does not answer; it is asked again.")
    return state


def _told(state: HostDrain) -> str:
    if state.host.draining_since is None:
        return f"{state.host.host} takes calls"
    if state.is_drained:
        return f"{state.host.host} drained"
    counts = {"calls": state.calls, "tools": state.tools, "sessions": state.sessions, "tasks": state.tasks}
    left = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    return f"{state.host.host} drains: {left or 'it has not said yet what is left'}"


def _row(host: Host) -> Iterable[Cell]:
    yield cell(host.host, "bold")
    yield cell("alive", "green") if host.is_alive else cell("dead", "red")
    yield cell(moment(host.draining_since), "yellow") if host.draining_since else ""
    yield moment(host.started_at)
    slots, calls = (", ".join(f"{bucket}: {count}" for bucket, count in counts.items()) for counts in (host.buckets, host.calls))
    yield from (slots, calls or "0", str(host.tools), str(host.sessions))
