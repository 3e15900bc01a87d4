"""The commands about KnowHub."""

from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import fail_if
from toolagent.cli.options import commands
from toolagent.cli.render import show_failure, show_left_out, show_note, show_plain
from toolagent.contracts.knowhub import KnowHubSync, SyncStatus

__all__ = ["knowhub"]

knowhub = commands("Link the resources of KnowHub and our tools to each other.")

_FAILED = (SyncStatus.OFF, SyncStatus.FAILED, SyncStatus.PARTLY)


@knowhub.callback()
def only_group() -> None:
    """Link the resources of KnowHub and our tools to each other."""


@knowhub.command("sync")
@asking
def sync(asked: Asked, dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes, and make none.")] = False) -> None:
    """Link KnowHub's resources and our tools to each other. Exit code 1 if KnowHub is off, or if some changes failed.

    `toolagent knowhub sync --dry-run`
    """
    done = asked.service.sync_knowhub(dry_run=dry_run)
    asked.show(done, _show)
    fail_if(done.status in _FAILED)


def _show(done: KnowHubSync) -> None:
    (show_failure if done.status in _FAILED else show_note)(f"{done.status.value}: {done.said}")
    for link in done.plan.links:
        show_plain(f"{link.tool_id} <-> {link.resource_id}  {link.score:.2f}  {'; '.join(link.reasons)}")
    if more := done.plan.links_total - len(done.plan.links):
        show_plain(f"{more} more links")
    for slugs in done.plan.ours:
        show_plain(f"here   {slugs.tool_id}: tool_slug_ids + {', '.join(slugs.add)}")
    for change in done.plan.theirs:
        items = f": toolhub_items + {', '.join(change.add)}" if change.add else ""
        show_plain(f"there  {change.resource_id}{items}{f'; status {change.status}' if change.status else ''}")
    show_left_out(done.plan)
    for failure in done.failed:
        show_failure(f"not changed: {failure.resource_id}: {failure.reason}")
