"""The commands about MCP."""

from collections.abc import Iterable
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import ExitCode
from toolagent.cli.mcp_stdio import stdio
from toolagent.cli.render import Cell, cell, moment, show_failure, show_note, show_plain, show_table, table_of
from toolagent.contracts.mcp_servers import McpServer, McpServers

__all__ = ["mcp"]

mcp = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="MCP servers, whose tools are found and called here.")

mcp.command("stdio")(stdio)

Name = Annotated[str, typer.Argument(help="What the server is called, as `toolagent mcp list` shows it.", show_default=False)]
_WEB = ("http://", "https://")


@mcp.command("add")
@asking
def add(
    asked: Asked,
    name: Annotated[str, typer.Argument(help="What to call it: the ids of its tools begin with this.", show_default=False)],
    target: Annotated[
        list[str], typer.Argument(metavar="URL | -- COMMAND [ARGS]...", help="Where it is, or what starts it.", show_default=False)
    ],
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable that it is started with.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header that it is shown.")] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Begins the ids of its tools, in place of NAME; may be empty.", show_default=False)
    ] = None,
    trusted: Annotated[bool, typer.Option("--trusted", help="Believe what it says of side effects and repeating.")] = False,
    allow_host: Annotated[list[str] | None, typer.Option(metavar="HOST", help="A host that it may reach when it is started here.")] = None,
    allow_read: Annotated[list[str] | None, typer.Option(metavar="FOLDER", help="A folder of the machine that it may read.")] = None,
    allow_write: Annotated[list[str] | None, typer.Option(metavar="FOLDER", help="A folder of the machine that it may write.")] = None,
) -> None:
    """Take in an MCP server: its tools are found and called as `NAME_TOOL` from then on. Keys become secrets.

    `toolagent mcp add time -- uvx mcp-server-time`
    """
    first, *args = target
    is_web = first.startswith(_WEB)
    if is_web and args:
        raise typer.BadParameter("A URL stands alone.", param_hint="URL")
    server = asked.service.add_mcp_server(
        name,
        url=first if is_web else None,
        command=None if is_web else first,
        args=args,
        env=_named(env, "--env"),
        headers=_named(header, "--header"),
        prefix=prefix,
        trusted=trusted,
        allow_hosts=allow_host or (),
        allow_read=allow_read or (),
        allow_write=allow_write or (),
    )
    asked.show(server, _show)


@mcp.command("list")
@asking
def list_servers(asked: Asked) -> None:
    """List the MCP servers, and how the last look at each ended.

    `toolagent mcp list`
    """
    asked.show(asked.service.mcp_servers(), _show_all)


@mcp.command("refresh")
@asking
def refresh(asked: Asked, name: Name) -> None:
    """Ask a server for its tools again. Changed and new ones wait for `toolagent activate`. Exit code 1 when it cannot be reached.

    `toolagent mcp refresh time`
    """
    server = asked.service.refresh_mcp_server(name)
    asked.show(server, _show)
    if server.error:
        raise typer.Exit(ExitCode.FAILED)


@mcp.command("remove")
@asking
def remove(asked: Asked, name: Name) -> None:
    """Remove a server, with its tools and its keys.

    `toolagent mcp remove time`
    """
    asked.show(asked.service.remove_mcp_server(name), lambda gone: show_plain(f"{gone.name} removed, with {gone.tools} tools"))


def _named(given: Iterable[str] | None, option: str) -> dict[str, str]:
    pairs = [one.partition("=") for one in given or ()]
    if any(not equals for _, equals, _ in pairs):
        raise typer.BadParameter("It has the form NAME=VALUE.", param_hint=option)
    return {name: value for name, _, value in pairs}


def _show(server: McpServer) -> None:
    show_plain(f"{server.name}: {len(server.tool_ids)} tools, as of {moment(server.refreshed_at) if server.refreshed_at else 'never'}")
    for tool_id in server.tool_ids:
        show_plain(f"  {tool_id}")
    for one in server.waiting:
        show_note(f"{'new' if one.is_new else 'changed'}, waits for: toolagent activate {one.tool_id} {one.version}", "yellow")
    for tool_id in server.gone:
        show_note(f"not listed any more: {tool_id}", "yellow")
    for left in server.left_out:
        show_note(f"left out: {left.entry}: {left.reason}", "yellow")
    if more := server.left_out_total - len(server.left_out):
        show_note(f"left out: {more} more", "yellow")
    if server.error:
        show_failure(f"The last look at it failed: {server.error}")


def _show_all(found: McpServers) -> None:
    show_table(table_of(("name", "tools", "waiting", "gone", "left out", "as of", "where", "error"), map(_row, found.servers)))


def _row(server: McpServer) -> Iterable[Cell]:
    yield cell(server.name, "bold")
    yield from (str(len(server.tool_ids)), str(len(server.waiting)), str(len(server.gone)), str(server.left_out_total))
    yield moment(server.refreshed_at) if server.refreshed_at else "never"
    yield server.spec.url or " ".join((server.spec.command or "", *server.spec.args))
    yield cell(server.error, "red") if server.error else ""
