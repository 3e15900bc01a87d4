"""Inputs of the operations of the Nexus service."""

from typing import Annotated

from pydantic import Field

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.calls import Caller, IdempotencyKey
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.task_specs import TaskSpec

__all__ = ["CreateToolRequest", "ToolQuery", "ToolSearch"]


class CreateToolRequest(Contract):
    """A request to make or repair a tool. The same key of the same caller is the same task."""

    spec: TaskSpec
    description: str = ""
    """The wish in words, used if the specification has no description."""
    caller: Caller = Caller()
    idempotency_key: IdempotencyKey | None = None


class ToolQuery(Contract):
    tool_id: ToolId


class ToolSearch(Contract):
    """A search by words, or by a tool's id or name. Without a keyword, all tools that match the other fields."""

    keyword: Annotated[str, Field(max_length=500)] = ""
    category: str | None = None
    namespace: str | None = None
    tag: str | None = None
    group: str | None = None
    backend_runtime: BackendRuntime | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 20
