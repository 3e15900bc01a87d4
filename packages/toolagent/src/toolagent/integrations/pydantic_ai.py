"""The tools of a service for Pydantic AI."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false

from pydantic import JsonValue
from pydantic_ai import ModelRetry, Tool

from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import Caller, ErrorType
from toolagent.core.formats.uses import answer_text
from toolagent.integrations.offered import OfferedTool, offered

__all__ = ["tools"]


def tools(
    service: ToolAgentHttp, *tool_ids: str, namespace: str | None = None, tag: str | None = None, caller: Caller | None = None
) -> list[Tool]:
    """For `Agent(tools=…)`. After a `validation_error` the model is asked again; other errors are what it reads. Raises as `offered`."""
    return [_tool(tool) for tool in offered(service, *tool_ids, namespace=namespace, tag=tag, caller=caller)]


def _tool(tool: OfferedTool) -> Tool:
    async def call(**params: JsonValue) -> JsonValue:
        result = await tool.run(params)
        if result.error_type is ErrorType.VALIDATION_ERROR:
            raise ModelRetry(answer_text(result))
        return result.result if result.error is None else answer_text(result)

    return Tool.from_schema(call, name=tool.name, description=tool.description, json_schema=tool.schema)
