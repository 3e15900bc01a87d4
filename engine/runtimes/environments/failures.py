"""The failures of scripts, and their error types."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from engine.runtimes.failures import CallFailed, NotSent, RuntimeFailure, StartFailed
from toolagent.contracts.calls import ORIGINAL_TYPE, ErrorType


class ScriptErrorKind(StrEnum):
    """The specification defines the first four and allows more."""

    TIMEOUT = "TimeoutError"
    SCRIPT = "ScriptError"
    DEPENDENCY = "DependencyError"
    SECURITY = "SecurityError"
    NOT_FOUND = "ScriptNotFoundError"
    INPUT = "InputError"
    OUTPUT = "OutputError"
    RESOURCE = "ResourceLimitError"
    UNAVAILABLE = "UnavailableError"


_TYPES: Mapping[ScriptErrorKind, ErrorType] = {
    ScriptErrorKind.TIMEOUT: ErrorType.TIMEOUT,
    ScriptErrorKind.SCRIPT: ErrorType.EXECUTION_ERROR,
    ScriptErrorKind.DEPENDENCY: ErrorType.DEPENDENCY_ERROR,
    ScriptErrorKind.SECURITY: ErrorType.SECURITY_ERROR,
    ScriptErrorKind.NOT_FOUND: ErrorType.DEPENDENCY_ERROR,
    ScriptErrorKind.INPUT: ErrorType.VALIDATION_ERROR,
    ScriptErrorKind.OUTPUT: ErrorType.OUTPUT_VALIDATION_ERROR,
    ScriptErrorKind.RESOURCE: ErrorType.EXECUTION_ERROR,
    ScriptErrorKind.UNAVAILABLE: ErrorType.UNAVAILABLE,
}


class ScriptFailure(Exception):
    """A script failed. `facts` are for programs, `told` is its stderr, `logs` its whole output.

    `ran`: the script was executed, so it may have had effects.
    """

    def __init__(
        self,
        kind: ScriptErrorKind,
        message: str,
        facts: Mapping[str, JsonValue] | None = None,
        *,
        told: str = "",
        logs: tuple[str, ...] = (),
        ran: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.facts, self.told, self.logs, self.ran = kind, message, dict(facts or {}), told, logs, ran

    @property
    def error_type(self) -> ErrorType:
        return _TYPES[self.kind]

    @property
    def details(self) -> dict[str, JsonValue]:
        """The details of the ToolError, including the kind."""
        return {ORIGINAL_TYPE: self.kind.value, **self.facts, **({"stderr": self.told} if self.told else {})}

    @property
    def as_start_failure(self) -> StartFailed:
        return StartFailed(self.error_type, self.message, self.details)

    @property
    def as_call_failure(self) -> RuntimeFailure:
        """The failure of a call. Only a script that never ran may be tried elsewhere; an interrupted one may have acted."""
        if not self.ran:
            return NotSent(self.error_type, self.message, self.details)
        outcome: Literal["failed", "unknown"] = "unknown" if self.kind is ScriptErrorKind.TIMEOUT else "failed"
        return CallFailed(self.error_type, self.message, self.details, outcome)

    @classmethod
    def of_start(cls, failure: RuntimeFailure) -> "ScriptFailure":
        """Convert the failure of a part that other runtimes share."""
        kind = next((kind for kind, error_type in _TYPES.items() if error_type is failure.error_type), ScriptErrorKind.UNAVAILABLE)
        return cls(kind, failure.message, failure.details)
