"""The commands that start, stop and remove tools."""

import sys
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.options import Tool, tool_id_of
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_plain
from toolagent.contracts.http import ToolStarted

__all__ = ["remove", "start", "stop"]


@asking
def start(asked: Asked, tool: Tool) -> None:
    """Start a tool before its first call; a call starts it too.

    `toolagent start image_stitcher`
    """
    asked.show(asked.service.start(tool_id_of(tool)), _show_started)


@asking
def stop(asked: Asked, tool: Tool) -> None:
    """Stop a tool wherever it runs; its calls in flight fail, and the next call starts it again.

    `toolagent stop image_stitcher`
    """
    asked.show(asked.service.stop(tool_id_of(tool)), lambda stopped: show_plain(f"{stopped.tool_id} {stopped.state.value}"))


@asking
def remove(
    asked: Asked,
    tool: Tool,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where there is no terminal to ask at.")] = False,
) -> None:
    """Stop a tool and take it out of the registry, with all its versions and its files.

    `toolagent remove word_counter --yes`
    """
    tool_id = tool_id_of(tool)
    if not yes and not sys.stdin.isatty():
        raise ParameterError(f"This is no terminal to confirm the removal of {tool_id!r} in: give --yes.")
    if not yes:
        typer.confirm(f"Remove {tool_id} with all its versions?", abort=True, err=True)
    asked.show(asked.service.destroy(tool_id), lambda removed: show_plain(f"{removed.tool_id} removed"))


def _show_started(started: ToolStarted) -> None:
    show_plain(" ".join(filter(None, (started.tool_id, started.state.value, started.endpoint))))
