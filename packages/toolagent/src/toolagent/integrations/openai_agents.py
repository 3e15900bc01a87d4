"""The tools of a service for the OpenAI Agents SDK."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false

from typing import Unpack

from agents import FunctionTool
from agents.tool_context import ToolContext

from toolagent.client.http import ToolAgentHttp
from toolagent.core.formats.uses import answer_text, use_of_openai
from toolagent.integrations.offered import Choice, OfferedTool, offered

__all__ = ["tools"]


def tools(service: ToolAgentHttp, *tool_ids: str, **choice: Unpack[Choice]) -> list[FunctionTool]:
    """For `Agent(tools=…)`. The model reads errors of a call as its output. Raises as `offered`."""
    return [_function_tool(tool) for tool in offered(service, *tool_ids, **choice)]


def _function_tool(tool: OfferedTool) -> FunctionTool:
    async def invoke(context: ToolContext, arguments: str) -> str:
        use = use_of_openai({"call_id": context.tool_call_id, "name": tool.name, "arguments": arguments})
        return use.fault or answer_text(await tool.run(use.params))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema,
        on_invoke_tool=invoke,
        # A strict schema has every parameter required.
        strict_json_schema=False,
    )
