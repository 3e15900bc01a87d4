"""The tools of a service for LangChain, and with it LangGraph."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false

from typing import Unpack

from langchain_core.tools import BaseTool, ToolException
from pydantic import JsonValue, PrivateAttr

from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.calls import ToolResult
from toolagent.core.formats.uses import answer_text
from toolagent.integrations.offered import Choice, OfferedTool, offered

__all__ = ["ServiceTool", "tools"]


class ServiceTool(BaseTool):
    """One tool of a service. Parameters may have any name, also those with a special meaning in LangChain."""

    handle_tool_error: bool = True
    _tool: OfferedTool = PrivateAttr()

    @classmethod
    def of(cls, tool: OfferedTool) -> "ServiceTool":
        made = cls(name=tool.name, description=tool.description, args_schema=tool.schema)
        made._tool = tool
        return made

    def _run(self, /, **params: JsonValue) -> str:
        return _told(self._tool.call(params))

    async def _arun(self, /, **params: JsonValue) -> str:
        return _told(await self._tool.run(params))


def tools(service: ToolAgentHttp, *tool_ids: str, **choice: Unpack[Choice]) -> list[ServiceTool]:
    """For `bind_tools` and agents. An error of a call is a `ToolMessage` of status `error`. Raises as `offered`."""
    return [ServiceTool.of(tool) for tool in offered(service, *tool_ids, **choice)]


def _told(result: ToolResult) -> str:
    if result.error is not None:
        raise ToolException(answer_text(result))
    return answer_text(result)
