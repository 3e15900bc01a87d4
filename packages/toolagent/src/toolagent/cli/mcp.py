"""The commands about MCP."""

import time
from collections.abc import Iterable
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import fail_if
from toolagent.cli.mcp_stdio import stdio
from toolagent.cli.options import commands
from toolagent.cli.parameters import named_values
from toolagent.cli.render import Cell, cell, moment, show_failure, show_left_out, show_note, show_plain, show_table, table_of
from toolagent.contracts.mcp_oauth import McpGrant, McpOAuth
from toolagent.contracts.mcp_servers import McpServer, McpServers, McpServerSpec

__all__ = ["mcp"]

mcp = commands("MCP servers, whose tools are found and called here.")

mcp.command("stdio")(stdio)

Name = Annotated[str, typer.Argument(help="The name of the server, as `toolagent mcp list` shows it.", show_default=False)]
_LOOK_AGAIN_S = 1.0
_EXCHANGE_S = 20.0
"""Longer than the service takes to log in after the browser is back."""

_SHOWN = 80


@mcp.command("add")
@asking
def add(
    asked: Asked,
    name: Annotated[str, typer.Argument(help="Its name, with which the ids of its tools begin.", show_default=False)],
    target: Annotated[
        list[str], typer.Argument(metavar="URL | -- COMMAND [ARGS]...", help="Its URL, or the command that starts it.", show_default=False)
    ],
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable of its environment.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header of requests to it.")] = None,
    client_id: Annotated[str | None, typer.Option(help="The client that logs in, if its authorization server wants a known one.")] = None,
    client_secret: Annotated[str | None, typer.Option(metavar="SECRET", help="The secret of the client.", show_default=False)] = None,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="A scope that the client asks for; by default those that the server names.")
    ] = None,
    client_credentials: Annotated[
        bool, typer.Option("--client-credentials", help="The client logs in as itself, without a browser.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="If it wants a login, wait until the login is over.")] = True,
    prefix: Annotated[
        str | None, typer.Option(help="Begins the ids of its tools, instead of NAME; may be empty.", show_default=False)
    ] = None,
    trusted: Annotated[bool, typer.Option("--trusted", help="Believe what it says about side effects and repeating.")] = False,
    allow_host: Annotated[list[str] | None, typer.Option(metavar="HOST", help="A host that it may reach when it is started here.")] = None,
    allow_read: Annotated[list[str] | None, typer.Option(metavar="FOLDER", help="A folder of the machine that it may read.")] = None,
    allow_write: Annotated[list[str] | None, typer.Option(metavar="FOLDER", help="A folder of the machine that it may write.")] = None,
) -> None:
    """Add an MCP server: its tools are found and called as `NAME_TOOL` from then on. Keys become secrets.

    If it wants a login, the command shows the URL to open in a browser.

    `toolagent mcp add time -- uvx mcp-server-time`
    """
    first, *args = target
    is_web = "://" in first
    if is_web and args:
        raise typer.BadParameter("A URL stands alone.", param_hint="URL")
    server = asked.service.add_mcp_server(
        name,
        url=first if is_web else None,
        command=None if is_web else first,
        args=args,
        env=named_values(env, "--env"),
        headers=named_values(header, "--header"),
        oauth=_client(client_id, client_secret, scope or (), is_for_itself=client_credentials),
        prefix=prefix,
        trusted=trusted,
        allow_hosts=allow_host or (),
        allow_read=allow_read or (),
        allow_write=allow_write or (),
    )
    _show_login(asked, server, wait=wait)


@mcp.command("login")
@asking
def login(
    asked: Asked,
    name: Name,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the login is over.")] = True,
) -> None:
    """Log in at a server in a browser, also again. Exit code 1 if the time for the login is over.

    `toolagent mcp login tickets`
    """
    _show_login(asked, asked.service.log_in_at_mcp_server(name), wait=wait)


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
    """Ask a server for its tools again. Changed and new tools wait for `toolagent activate`. Exit code 1 if it cannot be reached.

    `toolagent mcp refresh time`
    """
    server = asked.service.refresh_mcp_server(name)
    asked.show(server, _show)
    fail_if(server.error)


@mcp.command("remove")
@asking
def remove(asked: Asked, name: Name) -> None:
    """Remove a server, with its tools and its keys.

    `toolagent mcp remove time`
    """
    asked.show(asked.service.remove_mcp_server(name), lambda gone: show_plain(f"{gone.name} removed, with {gone.tools} tools"))


def _client(client_id: str | None, secret: str | None, scopes: Iterable[str], *, is_for_itself: bool) -> McpOAuth | None:
    if client_id is None:
        if secret is not None or scopes or is_for_itself:
            raise typer.BadParameter("It belongs to a client: give --client-id too.", param_hint="--client-id")
        return None
    grant = McpGrant.CLIENT_CREDENTIALS if is_for_itself else McpGrant.AUTHORIZATION_CODE
    return McpOAuth(client_id=client_id, client_secret=secret, scopes=tuple(scopes), grant=grant)


def _show_login(asked: Asked, server: McpServer, *, wait: bool) -> None:
    """Shows the server; after its login, if one has begun and `wait` is set."""
    if server.login_url and server.login_until:
        show_note(f"{server.name} wants a login. Open this in a browser until {moment(server.login_until)}:", "yellow")
        show_note(server.login_url)
        if wait:
            _wait_for_login(asked, server)
            server = asked.service.refresh_mcp_server(server.name)
    # The error of a server that wants a login is already on the screen.
    asked.show(server, _show_tools if server.login_url else _show)
    fail_if(wait and (server.login_required or server.error))


def _wait_for_login(asked: Asked, begun: McpServer) -> None:
    """Waits until the browser is back and the server was asked for its tools. Exit code 1 if there was no login."""
    before, left_s = begun, _EXCHANGE_S
    while left_s > 0:
        time.sleep(_LOOK_AGAIN_S)
        server = asked.service.mcp_server(begun.name)
        if server.login_url == begun.login_url:
            before = server
        elif server.attempted_at != before.attempted_at:
            return
        else:
            left_s -= _LOOK_AGAIN_S
    remedy = f"Begin another one: toolagent mcp login {begun.name}"
    fail_if(True, f"There was no login: it was refused, its time is over, or another one was begun. {remedy}")


def _show(server: McpServer) -> None:
    _show_tools(server)
    if server.error:
        show_failure(f"The last look at it failed: {server.error}")


def _show_tools(server: McpServer) -> None:
    show_plain(f"{server.name}: {len(server.tool_ids)} tools, as of {_refreshed(server)}")
    for tool_id in server.tool_ids:
        show_plain(f"  {tool_id}")
    for one in server.waiting:
        show_note(f"{'new' if one.is_new else 'changed'}, waits for: toolagent activate {one.tool_id} {one.version}", "yellow")
    for tool_id in server.gone:
        show_note(f"not listed any more: {tool_id}", "yellow")
    show_left_out(server)


def _show_all(found: McpServers) -> None:
    show_table(table_of(("name", "tools", "waiting", "gone", "left out", "as of", "where", "error"), map(_row, found.servers)))


def place_of(spec: McpServerSpec) -> str:
    """The URL or command in one short line. The arguments of a command may contain a whole program."""
    place = " ".join((spec.url or " ".join((spec.command or "", *spec.args))).split())
    return place if len(place) <= _SHOWN else f"{place[: _SHOWN - 1]}…"


def _refreshed(server: McpServer) -> str:
    return moment(server.refreshed_at) if server.refreshed_at else "never"


def _row(server: McpServer) -> Iterable[Cell]:
    yield cell(server.name, "bold")
    yield from map(str, (len(server.tool_ids), len(server.waiting), len(server.gone), server.left_out_total))
    yield from (_refreshed(server), place_of(server.spec))
    yield cell(server.error, "red") if server.error else ""
