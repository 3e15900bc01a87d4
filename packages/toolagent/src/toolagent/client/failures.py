"""Why a call was not taken, or its answer cannot be had now.

ToolAgentError
├── CallRefusedError      not taken; `result` is the answer
├── BrokenOffError       a batch was ended from outside; its calls end by themselves
└── AnswerPendingError    taken (or perhaps taken), but Temporal cannot be asked now; fetch it later by `call_id`

ControlFailedError        a tool could not be started or stopped; `error` says why
MakingUnreachableError    Temporal cannot be asked now about a task that makes or repairs a tool
"""

from toolagent.contracts.calls import ToolError, ToolResult

__all__ = ["AnswerPendingError", "BrokenOffError", "CallRefusedError", "ControlFailedError", "MakingUnreachableError", "ToolAgentError"]


class ToolAgentError(Exception):
    """Carries the `ToolResult` to answer with."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error.message if result.error else result.status)
        self.result = result
        self.call_id = result.call_id


class CallRefusedError(ToolAgentError):
    """The call was not made and will not be."""


class AnswerPendingError(ToolAgentError):
    """The call goes on, or may; its result is kept."""


class BrokenOffError(ToolAgentError):
    """A batch that has no ordinary end."""


class ControlFailedError(Exception):
    """Starting, stopping or destroying a tool did not work."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


class MakingUnreachableError(Exception):
    """Temporal does not answer; whether it has taken what it was asked is not known. Asking again under the same id does no harm."""
