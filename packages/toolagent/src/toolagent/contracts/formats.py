"""Tools in the forms of vendors, with their names there."""

from enum import StrEnum

from pydantic import JsonValue

from toolagent.contracts.contract import Contract

__all__ = ["FormattedTools", "ToolFormat"]


class ToolFormat(StrEnum):
    """The form of a vendor or a protocol."""

    OPENAI = "openai"
    """Function tools of chat completions."""
    OPENAI_RESPONSES = "openai_responses"
    """Function tools of responses."""
    ANTHROPIC = "anthropic"
    """Client tools of messages."""
    MCP = "mcp"
    """The tools of an MCP server."""


class FormattedTools(Contract):
    """The callable tools in the form of a vendor: `tools` goes into a request unchanged."""

    tools: tuple[dict[str, JsonValue], ...]
    names: dict[str, str]
    """Tool ids by the names in `tools`."""
    left_out: dict[str, str] = {}
    """Tools that the vendor does not accept, by id, with the reason."""
