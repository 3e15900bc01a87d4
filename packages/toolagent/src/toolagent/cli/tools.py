"""The commands that list tools and show one."""

from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.options import Tool, tool_id_of
from toolagent.cli.render import show_faults, show_note, show_tool, show_tools
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.http import Matches, ToolListing

__all__ = ["show", "tools"]

_FOUND = 20
"""How many tools a search shows."""


@asking
def tools(
    asked: Asked,
    search: Annotated[str | None, typer.Option(help="Tools for this need, the best first: some words, an id or a name.")] = None,
    category: Annotated[str | None, typer.Option(help="Only tools of this category.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Only tools whose ids begin with it and a colon.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only tools that have this tag.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=1000, help="The most to be shown; by default all, with --search 20.")] = None,
) -> None:
    """List the tools, or search them.

    `toolagent tools --search "make this picture smaller"`

    `toolagent tools --category math --json`

    `toolagent tools --namespace core --tag scripting`
    """
    asked.show(_found(asked.service, search, category, namespace, tag, limit), _show_listing)


@asking
def show(asked: Asked, tool: Tool) -> None:
    """Show what a tool takes, gives and is allowed, with a call to copy.

    `toolagent show image_stitcher`
    """
    asked.show(asked.service.tool(tool_id_of(tool)), show_tool)


def _found(
    service: ToolAgentHttp, search: str | None, category: str | None, namespace: str | None, tag: str | None, limit: int | None
) -> ToolListing | Matches:
    if search:
        return service.search(search, category, namespace, tag, limit=_FOUND if limit is None else limit)
    listing = service.tools(namespace, tag)
    fitting = tuple(tool for tool in listing.tools if category in {None, tool.category})
    return listing.model_copy(update={"tools": fitting[:limit]})


def _show_listing(listing: ToolListing | Matches) -> None:
    if listing.tools:
        show_tools(listing.tools)
    else:
        show_note("No tool fits.")
    if isinstance(listing, ToolListing):
        show_faults(listing.catalog_faults)
