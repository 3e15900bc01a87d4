"""What `handler.type: service-method` may name: the methods of the engine's services. To add one, add a line to METHODS."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.tool_files import ServiceMethod


@dataclass(frozen=True, slots=True)
class MethodOf:
    """The built-in handler that runs a method, and what holds for its tools where their files say nothing."""

    handler: ToolId
    of_tool: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


METHODS: Mapping[tuple[str, str], MethodOf] = {
    ("ExternalScriptExecutionService", "executeScript"): MethodOf(
        "execute_script",
        # The script's own limit is the parameter `timeoutMs`, which a shorter one here would cut off.
        of_tool={"timeout_s": 3_600.0, "category": "scripting"},
    ),
}
"""By the names of service and method."""


class UnknownMethodError(LookupError):
    """`field` is the one that names what is not there; the text says what is."""

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
