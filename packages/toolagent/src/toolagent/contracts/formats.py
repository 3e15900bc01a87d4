"""Tools in the forms of others, and under which name each is known there."""

from enum import StrEnum

from pydantic import JsonValue

from toolagent.contracts.contract import Contract

__all__ = ["FormattedTools", "ToolFormat"]


class ToolFormat(StrEnum):
    """Whose form."""

    OPENAI = "openai"
    """Function tools of chat completions."""
    OPENAI_RESPONSES = "openai_responses"
    """Function tools of responses."""
    ANTHROPIC = "anthropic"
    """Client tools of messages."""
    MCP = "mcp"
    """What an MCP server lists."""


class FormattedTools(Contract):
    """The tools that can be called, each as the vendor takes it: `tools` goes into a request as it is."""

    tools: tuple[dict[str, JsonValue], ...]
    names: dict[str, str]
    """Tool ids, by the names under which the tools are listed."""
    left_out: dict[str, str] = {}
    """Why a tool is not among them, by its id: the vendor does not take it."""
