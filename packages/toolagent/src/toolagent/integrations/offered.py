"""The tools of a service, in the form that all integrations use."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from pydantic import JsonValue, TypeAdapter

from toolagent.client.http import ToolAgentHttp
from toolagent.client.http_results import result_of
from toolagent.contracts.calls import Caller, ToolCall, ToolResult
from toolagent.contracts.contract import Contract, JsonSchema
from toolagent.contracts.formats import ToolFormat

__all__ = ["Choice", "OfferedTool", "offered"]


class _Function(Contract):
    name: str
    description: str
    parameters: JsonSchema


class _Listed(Contract):
    function: _Function


_LISTED = TypeAdapter(tuple[_Listed, ...])


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool with a name and a schema that every vendor accepts."""

    name: str
    description: str
    schema: JsonSchema
    tool_id: str
    service: ToolAgentHttp
    caller: Caller

    def call(self, params: Mapping[str, JsonValue]) -> ToolResult:
        """Make a call and wait for its result. Errors of the connection are results too."""
        call = ToolCall(tool_id=self.tool_id, params=dict(params), caller=self.caller)
        return result_of(partial(self.service.run, call), self.tool_id)

    async def run(self, params: Mapping[str, JsonValue]) -> ToolResult:
        """As `call`, in a thread."""
        return await asyncio.to_thread(self.call, params)


class Choice(TypedDict, total=False):
    """The namespace and tag of the tools, and the caller of their calls."""

    namespace: str | None
    tag: str | None
    caller: Caller | None


def offered(
    service: ToolAgentHttp, *tool_ids: str, namespace: str | None = None, tag: str | None = None, caller: Caller | None = None
) -> list[OfferedTool]:
    """The tools with these ids, or all with this namespace and tag.

    Raises ValueError for an id that is not among them, and as the methods of `ToolAgentHttp` do.
    """
    listed = service.tools_as(ToolFormat.OPENAI, namespace, tag)
    if missing := set(tool_ids) - set(listed.names.values()):
        reasons = [f"{tool_id!r} ({listed.left_out.get(tool_id, 'not there, or not active')})" for tool_id in sorted(missing)]
        raise ValueError(f"These tools cannot be offered: {', '.join(reasons)}.")
    functions, caller = [one.function for one in _LISTED.validate_python(listed.tools)], caller or Caller()
    tools = [OfferedTool(one.name, one.description, one.parameters, listed.names[one.name], service, caller) for one in functions]
    return [tool for tool in tools if not tool_ids or tool.tool_id in tool_ids]
