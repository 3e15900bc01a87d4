"""The commands about external tool tables."""

from collections.abc import Iterable
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import fail_if
from toolagent.cli.options import commands
from toolagent.cli.render import Cell, cell, moment, show_failure, show_left_out, show_plain, show_table, table_of
from toolagent.contracts.external_tables import ExternalTable, ExternalTables

__all__ = ["external"]

external = commands("Tables of tools on other hosts.")

Source = Annotated[str, typer.Argument(help="The name of the table, as `toolagent external list` shows it.", show_default=False)]


@external.command("add")
@asking
def add(
    asked: Asked,
    source: Annotated[str, typer.Argument(help="Its name, with which the ids of its tools begin.", show_default=False)],
    tools_url: Annotated[str, typer.Argument(metavar="TOOLS_URL", help="Where the table is.", show_default=False)],
    table_key: Annotated[
        str | None, typer.Option("--table-key", envvar="TABLE_API_KEY", help="The key that the table wants.", show_default=False)
    ] = None,
) -> None:
    """Add a table: its tools are found and called as `SOURCE:ID` from then on.

    `TABLE_API_KEY=… toolagent external add shop https://shop.example/tools`
    """
    asked.show(asked.service.add_table(source, tools_url, table_key), _show)


@external.command("list")
@asking
def list_tables(asked: Asked) -> None:
    """List the tables, and how the last fetch of each ended.

    `toolagent external list`
    """
    asked.show(asked.service.external_tables(), _show_all)


@external.command("refresh")
@asking
def refresh(asked: Asked, source: Source) -> None:
    """Fetch a table again. If that fails, its tools stay as they were, and the exit code is 1.

    `toolagent external refresh shop`
    """
    table = asked.service.refresh_table(source)
    asked.show(table, _show)
    fail_if(table.error)


@external.command("remove")
@asking
def remove(asked: Asked, source: Source) -> None:
    """Remove a table, with its tools and its key.

    `toolagent external remove shop`
    """
    asked.show(asked.service.remove_table(source), lambda gone: show_plain(f"{gone.source} removed, with {gone.tools} tools"))


def _show(table: ExternalTable) -> None:
    show_plain(f"{table.source}: {table.tools} tools ({table.form.value}), as of {moment(table.refreshed_at)}")
    show_left_out(table)
    if table.error:
        show_failure(f"The last fetch failed: {table.error}")


def _show_all(found: ExternalTables) -> None:
    show_table(table_of(("source", "form", "tools", "left out", "as of", "url", "error"), map(_row, found.tables)))


def _row(table: ExternalTable) -> Iterable[Cell]:
    yield cell(table.source, "bold")
    yield from (table.form.value, str(table.tools), str(table.left_out_total), moment(table.refreshed_at), table.tools_url)
    yield cell(table.error, "red") if table.error else ""
