"""What the operations of the Nexus service take."""

from typing import Annotated

from pydantic import Field

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.calls import Caller, IdempotencyKey
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.task_specs import TaskSpec

__all__ = ["CreateToolRequest", "ToolQuery", "ToolSearch"]


class CreateToolRequest(Contract):
    """A tool that is to be made, or mended. The same key of the same caller again is the same task."""

    spec: TaskSpec
    description: str = ""
    """What is wanted, in words; stands in where the specification has none."""
    caller: Caller = Caller()
    idempotency_key: IdempotencyKey | None = None


class ToolQuery(Contract):
    tool_id: ToolId


class ToolSearch(Contract):
    """A need in words, a tool's id or its name; without it all tools that are as the other fields say."""

    keyword: Annotated[str, Field(max_length=500)] = ""
    category: str | None = None
    namespace: str | None = None
    tag: str | None = None
    group: str | None = None
    backend_runtime: BackendRuntime | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 20
