"""What several commands take, and the service they speak to."""

from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from toolagent.cli.parameters import ParameterError
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.identifiers import ToolId

__all__ = ["ApiKey", "AsJson", "Tool", "Url", "connected", "tool_id_of"]

Url = Annotated[str, typer.Option("--url", envvar="TOOL_AGENT_URL", help="Where the service is.")]
ApiKey = Annotated[str | None, typer.Option("--api-key", envvar="TOOL_AGENT_API_KEY", show_default=False, help="Sent as a bearer token.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, as the service answers it.")]
Tool = Annotated[str, typer.Argument(help="The id of a tool, such as `image_stitcher`.", show_default=False)]


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
