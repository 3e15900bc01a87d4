"""The commands that start, stop and remove tools."""

import sys
from typing import Annotated

import typer

from toolagent.cli.failures import reported
from toolagent.cli.options import ApiKey, AsJson, Tool, Url, connected, tool_id_of
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_contract, show_plain
from toolagent.client.http import DEFAULT_URL

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    app.command()(start)
    app.command()(stop)
    app.command()(remove)


def start(tool: Tool, json_output: AsJson = False, url: Url = DEFAULT_URL, api_key: ApiKey = None) -> None:
    """Start a tool before anybody calls it; a call starts it too.

    `toolagent start image_stitcher`
    """
    with reported(), connected(url, api_key) as service:
        started = service.start(tool_id_of(tool))
        if json_output:
            show_contract(started)
        else:
            show_plain(" ".join(filter(None, (started.tool_id, started.state.value, started.endpoint))))


def stop(tool: Tool, json_output: AsJson = False, url: Url = DEFAULT_URL, api_key: ApiKey = None) -> None:
    """Stop a tool wherever it runs; its calls in flight fail, and the next call starts it again.

    `toolagent stop image_stitcher`
    """
    with reported(), connected(url, api_key) as service:
        stopped = service.stop(tool_id_of(tool))
        if json_output:
            show_contract(stopped)
        else:
            show_plain(f"{stopped.tool_id} {stopped.state.value}")


def remove(
    tool: Tool,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where there is no terminal to ask at.")] = False,
    json_output: AsJson = False,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = None,
) -> None:
    """Stop a tool and take it out of the registry, with all its versions and its files.

    `toolagent remove word_counter --yes`
    """
    with reported(), connected(url, api_key) as service:
        tool_id = tool_id_of(tool)
        if not yes and not sys.stdin.isatty():
            raise ParameterError(f"Nobody can be asked here whether {tool_id!r} is to go: give --yes.")
        if not yes:
            typer.confirm(f"Remove {tool_id} with all its versions?", abort=True, err=True)
        removed = service.destroy(tool_id)
        if json_output:
            show_contract(removed)
        else:
            show_plain(f"{removed.tool_id} removed")
