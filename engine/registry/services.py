"""The service methods for `handler.type: service-method`; METHODS has a line for each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.tool_files import ServiceMethod


@dataclass(frozen=True, slots=True)
class MethodOf:
    """The built-in handler of a method, and defaults for its tools."""

    handler: ToolId
    of_tool: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


METHODS: Mapping[tuple[str, str], MethodOf] = {
    ("ExternalScriptExecutionService", "executeScript"): MethodOf(
        "execute_script",
        # Long, because the parameter `timeoutMs` is the script's own limit.
        of_tool={"timeout_s": 3_600.0, "category": "scripting"},
    ),
}
"""By service and method."""


class UnknownMethodError(LookupError):
    """`field` names an unknown service or method. The message lists the known ones."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def method_of(handler: ServiceMethod) -> MethodOf:
    """Raises UnknownMethodError."""
    found = METHODS.get((handler.service_name, handler.method_name))
    if found is not None:
        return found
    methods = sorted(method for service, method in METHODS if service == handler.service_name)
    if methods:
        known = ", ".join(methods)
        raise UnknownMethodError("methodName", f"{handler.service_name} has no method {handler.method_name!r}; it has {known}.")
    known = ", ".join(sorted({service for service, _ in METHODS}))
    raise UnknownMethodError("serviceName", f"There is no service {handler.service_name!r}; there is {known}.")
