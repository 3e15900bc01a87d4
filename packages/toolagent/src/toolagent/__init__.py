"""The public names for using a Tool Agent service.

Each is loaded on first use and needs its extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolagent.client.child import ChildOptions, call_tool
    from toolagent.client.failures import AnswerPendingError, CallRefusedError, ToolAgentError
    from toolagent.client.http import Refused, ServiceError, ToolAgentHttp, Unreachable
    from toolagent.client.plugin import ToolAgentPlugin
    from toolagent.client.sub_agent import ToolSubAgent
    from toolagent.client.temporal import ToolAgentClient
    from toolagent.contracts.batches import BatchResult, ToolBatch
    from toolagent.contracts.calls import Caller, CallMode, ErrorType, ToolCall, ToolError, ToolResult
    from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool

__all__ = [
    "AnswerPendingError",
    "BatchResult",
    "BuildTool",
    "CallMode",
    "CallRefusedError",
    "Caller",
    "ChildOptions",
    "ErrorType",
    "GithubDeploy",
    "Refused",
    "RepairTool",
    "ServiceError",
    "ToolAgentClient",
    "ToolAgentError",
    "ToolAgentHttp",
    "ToolAgentPlugin",
    "ToolBatch",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "ToolSubAgent",
    "Unreachable",
    "call_tool",
]

_MODULES = {
    "contracts.batches": ("BatchResult", "ToolBatch"),
    "contracts.calls": ("CallMode", "Caller", "ErrorType", "ToolCall", "ToolError", "ToolResult"),
    "contracts.task_specs": ("BuildTool", "GithubDeploy", "RepairTool"),
    "client.http": ("Refused", "ServiceError", "ToolAgentHttp", "Unreachable"),
    "client.child": ("ChildOptions", "call_tool"),
    "client.failures": ("AnswerPendingError", "CallRefusedError", "ToolAgentError"),
    "client.plugin": ("ToolAgentPlugin",),
    "client.sub_agent": ("ToolSubAgent",),
    "client.temporal": ("ToolAgentClient",),
}


def __getattr__(name: str) -> object:
    """Raises ImportError when the extra of the name is not installed."""
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'toolagent' has no attribute {name!r}")
    try:
        return getattr(import_module(f"toolagent.{module}"), name)
    except ModuleNotFoundError as error:
        extra = "http" if module == "client.http" else "temporal"
        remedy = import_module("toolagent.extras").remedy_of(extra)
        raise ImportError(f"toolagent.{name} needs {error.name}. {remedy}", name=error.name) from error
