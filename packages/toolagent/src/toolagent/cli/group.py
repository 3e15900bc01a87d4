"""The commands about groups and their sessions."""

from collections.abc import Iterator
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.endings import finish
from toolagent.cli.failures import fail_if
from toolagent.cli.files import read_text, uploaded
from toolagent.cli.options import Timeout, commands
from toolagent.cli.parameters import parse_parameters
from toolagent.cli.render import cell, show_lines, show_plain, show_rows
from toolagent.contracts.groups import GroupLimits, GroupRole, ToolGroup
from toolagent.contracts.http import GroupListing, SessionListing
from toolagent.contracts.sessions import SessionRun, SessionState, SessionView

__all__ = ["group"]

Group = Annotated[str, typer.Argument(help="The id of a group, such as `browser_session`.", show_default=False)]
Session = Annotated[str, typer.Argument(help="The id that `group open` printed.", show_default=False)]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="NAME=VALUE", show_default=False, help="As of `toolagent run`; read by the tool's schema.")
]
Key = Annotated[str | None, typer.Option(metavar="KEY", help="Idempotency key: the same key is one session, or one call in it.")]

group = commands("Groups of tools, and their sessions.")


@group.command("list")
@asking
def list_groups(asked: Asked) -> None:
    """List the groups.

    `toolagent group list`
    """
    asked.show(asked.service.groups(), _show_groups)


@group.command("show")
@asking
def show_group(asked: Asked, group: Group) -> None:
    """Show the steps of a group, and when its sessions end.

    `toolagent group show browser_session`
    """
    asked.show(asked.service.group(group), _show_group)


@group.command("open")
@asking
def open_session(
    asked: Asked,
    group: Group,
    parameters: Words = None,
    key: Key = None,
    lease: Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop it when it is neither used nor renewed for so long.")] = None,
) -> None:
    """Launch a session. The service stops it in any case. Exit code 1 if the launch failed.

    `toolagent group open browser_session allowed_hosts=example.com`
    """
    found = asked.service.group(group)
    step = found.step(GroupRole.LAUNCH)
    params = parse_parameters(parameters or [], asked.service.tool(step.tool_id).input_schema if step else {}, read_text)
    view = asked.service.open_session(group, uploaded(asked.service, params), key, lease_s=lease)
    asked.show(view, _show_session)
    fail_if(view.state is SessionState.FAILED, view.error.message if view.error else "The session could not be launched.")


@group.command("sessions")
@asking
def list_sessions(
    asked: Asked, group: Group, living: Annotated[bool, typer.Option("--living", help="Only those that have not ended.")] = False
) -> None:
    """List the sessions of a group, the newest first.

    `toolagent group sessions browser_session --living`
    """
    asked.show(asked.service.sessions(group, living=living), _show_sessions)


@group.command("session")
@asking
def show_session(asked: Asked, group: Group, session: Session) -> None:
    """Show a session.

    `toolagent group session browser_session session-0123456789abcdef`
    """
    asked.show(asked.service.session(group, session), _show_session)


@group.command("run")
@asking
def run(
    asked: Asked,
    group: Group,
    session: Session,
    parameters: Words = None,
    tool: Annotated[str | None, typer.Option(help="Which tool of the group; may be left out where only one runs.")] = None,
    timeout: Timeout = None,
    key: Key = None,
) -> None:
    """Make a call in a session and print its result. Exit code 1 when it failed.

    `toolagent group run browser_session session-0123456789abcdef url=https://example.com --tool browser_navigate`
    """
    steps = [step.tool_id for step in asked.service.group(group).steps if step.role is GroupRole.RUN and tool in {None, step.tool_id}]
    schema = asked.service.tool(steps[0]).input_schema if len(steps) == 1 else {}
    params = uploaded(asked.service, parse_parameters(parameters or [], schema, read_text))
    result = asked.service.run_in_session(group, session, SessionRun(tool_id=tool, params=params, key=key, timeout_s=timeout))
    finish(asked.service, result, json_output=asked.json_output)


@group.command("renew")
@asking
def renew(asked: Asked, group: Group, session: Session) -> None:
    """Renew the lease of a session. Each run does that too.

    `toolagent group renew browser_session session-0123456789abcdef`
    """
    asked.show(asked.service.renew_session(group, session), _show_session)


@group.command("stop")
@asking
def stop(asked: Asked, group: Group, session: Session) -> None:
    """Stop a session. Stopping it again changes nothing.

    `toolagent group stop browser_session session-0123456789abcdef`
    """
    asked.show(asked.service.stop_session(group, session), _show_session)


def _show_groups(found: GroupListing) -> None:
    show_lines(
        ("id", "lifecycle", "tools", "description"),
        (
            (cell(one.group_id, "bold"), "yes" if one.lifecycle else "—", " ".join(one.tool_ids), one.description or one.name)
            for one in found.groups
        ),
    )


def _show_group(found: ToolGroup) -> None:
    show_plain(f"{found.group_id} · {found.name} · {found.category}")
    show_plain(found.description or "(no description)")
    if found.lifecycle:
        show_rows(
            ("step", "tool", "bound"),
            (
                (step.role.value, cell(step.tool_id, "bold"), " ".join(f"{name}={path}" for name, path in step.bindings.items()))
                for step in found.steps
            ),
        )
        show_plain("a session ends: " + ", ".join(_ends(found.limits)))
    elif found.usage_order:
        show_plain("order: " + " → ".join(found.usage_order))
    if found.usage_example:
        show_plain(found.usage_example)


def _ends(limits: GroupLimits) -> Iterator[str]:
    yield "when it is stopped"
    if limits.idle_timeout_s is not None:
        yield f"unused for {limits.idle_timeout_s:g} s"
    if limits.total_timeout_s is not None:
        yield f"after {limits.total_timeout_s:g} s"
    if limits.max_usd is not None:
        yield f"at {limits.max_usd:g} USD"


def _show_sessions(found: SessionListing) -> None:
    show_rows(("session", "state", "end", "opened", "runs"), (_row(view) for view in found.sessions))


def _show_session(view: SessionView) -> None:
    _show_sessions(SessionListing(sessions=(view,)))


def _row(view: SessionView) -> tuple[str, ...]:
    return (view.session_id, view.state.value, view.end.value if view.end else "—", f"{view.opened_at:%Y-%m-%d %H:%M:%S}", str(view.runs))
