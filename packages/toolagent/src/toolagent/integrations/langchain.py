"""The tools of a service for LangChain, and with it LangGraph."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false

import asyncio

from langchain_core.tools import StructuredTool, ToolException
from pydantic import JsonValue

from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import Caller
from toolagent.core.formats.uses import answer_text
from toolagent.integrations.offered import OfferedTool, offered

__all__ = ["tools"]


def tools(
    service: ToolAgentHttp, *tool_ids: str, namespace: str | None = None, tag: str | None = None, caller: Caller | None = None
) -> list[StructuredTool]:
    """For `bind_tools` and agents. An error of a call is a `ToolMessage` of status `error`. Raises as `offered`."""
    return [_structured_tool(tool) for tool in offered(service, *tool_ids, namespace=namespace, tag=tag, caller=caller)]


def _structured_tool(tool: OfferedTool) -> StructuredTool:
    async def call(**params: JsonValue) -> str:
        result = await tool.run(params)
        if result.error is not None:
            raise ToolException(answer_text(result))
        return answer_text(result)

    def call_and_wait(**params: JsonValue) -> str:
        return asyncio.run(call(**params))

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.schema,
        func=call_and_wait,
        coroutine=call,
        handle_tool_error=True,
    )
