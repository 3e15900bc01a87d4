"""The command about what sandboxed programs did."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from toolagent.cli.failures import reported
from toolagent.cli.options import ApiKey, AsJson, Url, connected, tool_id_of
from toolagent.cli.render import show_audit, show_contract, show_note
from toolagent.client.http import DEFAULT_URL

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    app.command()(audit)


def audit(
    tool: Annotated[str | None, typer.Option(help="Only runs of this tool.")] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Only runs that began then (UTC) or later.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many, the newest first.")] = 100,
    json_output: AsJson = False,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = None,
) -> None:
    """List what sandboxed programs did on the host that answers, the newest first.

    `toolagent audit --tool core:execute-python-script --since 2026-03-26`
    """
    with reported(), connected(url, api_key) as service:
        page = service.audit(tool_id_of(tool) if tool else None, since.replace(tzinfo=UTC) if since else None, limit)
        if json_output:
            show_contract(page)
            return
        if page.entries:
            show_audit(page.entries)
        else:
            show_note("Nothing is written down of such runs.")
        if page.more:
            show_note("There are older ones: raise --limit, or narrow --tool and --since.")
        if page.unreadable:
            show_note(f"{page.unreadable} lines of the log could not be read.")
