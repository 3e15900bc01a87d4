"""Options and arguments of several commands, and the connection to the service."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from toolagent.cli.parameters import ParameterError
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.identifiers import ToolId

__all__ = ["ApiKey", "AsJson", "Detach", "Out", "Output", "Timeout", "Tool", "Url", "commands", "connected", "tool_id_of"]

Url = Annotated[str, typer.Option("--url", envvar="TOOL_AGENT_URL", help="Where the service is.")]
ApiKey = Annotated[str | None, typer.Option("--api-key", envvar="TOOL_AGENT_API_KEY", show_default=False, help="Sent as a bearer token.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, as the service answers it.")]
Detach = Annotated[bool, typer.Option("--async", help="Print the task id and do not wait.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Save the files the result names in this folder.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the whole result to this file, however large it is.")
]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of the call.")]
Tool = Annotated[str, typer.Argument(help="The id of a tool, such as `image_stitcher`.", show_default=False)]


def commands(summary: str) -> typer.Typer:
    """A command that only has commands below it."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=summary)


def connected(url: str, api_key: str | None) -> ToolAgentHttp:
    try:
        return ToolAgentHttp(url, api_key)
    except ValueError as error:
        raise ParameterError(str(error)) from error


def tool_id_of(tool: str) -> str:
    try:
        return TypeAdapter(ToolId).validate_python(tool)
    except ValidationError as error:
        raise ParameterError(f"{tool!r} is not a tool id (small letters, digits, _ and -); `toolagent tools` lists them.") from error
