"""The tools of a service for Pydantic AI."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false

from typing import Unpack

from pydantic import JsonValue
from pydantic_ai import Tool

from toolagent.client.http import ToolAgentHttp
from toolagent.core.formats.uses import answer_value
from toolagent.integrations.offered import Choice, OfferedTool, offered

__all__ = ["tools"]


def tools(service: ToolAgentHttp, *tool_ids: str, **choice: Unpack[Choice]) -> list[Tool]:
    """For `Agent(tools=…)`. The model reads errors of a call as its output. Raises as `offered`."""
    return [_tool(tool) for tool in offered(service, *tool_ids, **choice)]


def _tool(tool: OfferedTool) -> Tool:
    async def call(**params: JsonValue) -> JsonValue:
        # `ModelRetry` would end the run when a model gets its arguments wrong twice.
        return answer_value(await tool.run(params))

    return Tool.from_schema(call, name=tool.name, description=tool.description, json_schema=tool.schema)
