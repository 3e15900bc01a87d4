"""The command that lists the runs of sandboxed programs."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.options import tool_id_of
from toolagent.cli.render import show_audit

__all__ = ["audit"]


@asking
def audit(
    asked: Asked,
    tool: Annotated[str | None, typer.Option(help="Only runs of this tool.")] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Only runs that began then (UTC) or later.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most this many, the newest first.")] = 100,
) -> None:
    """List what sandboxed programs did on the host that answers, the newest first.

    `toolagent audit --tool core:execute-python-script --since 2026-03-26`
    """
    page = asked.service.audit(tool_id_of(tool) if tool else None, since.replace(tzinfo=UTC) if since else None, limit)
    asked.show(page, show_audit)
