"""Why a call was refused, or its answer is not available now.

ToolAgentError
├── CallRefusedError      refused; `result` is the answer
├── BrokenOffError       a batch was ended from outside; its calls end by themselves
└── AnswerPendingError    accepted (perhaps), but Temporal does not answer; get the result later by `call_id`

ControlFailedError        a tool could not be started or stopped; `error` says why
MakingUnreachableError    Temporal does not answer now about a task that makes or repairs a tool
SessionUnreachableError   neither Temporal nor a worker answers now for a session of a group
SessionRefusedError       a session refuses a request; `type` says why
ChatUnreachableError      neither Temporal nor a worker answers now for a conversation
ChatRefusedError          a conversation refuses a message; `type` says why
"""

from toolagent.contracts.calls import ToolError, ToolResult

__all__ = [
    "AnswerPendingError",
    "BrokenOffError",
    "CallRefusedError",
    "ChatRefusedError",
    "ChatUnreachableError",
    "ControlFailedError",
    "MakingUnreachableError",
    "SessionRefusedError",
    "SessionUnreachableError",
    "ToolAgentError",
]


class ToolAgentError(Exception):
    """Has the `ToolResult` to answer with."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error.message if result.error else result.status)
        self.result = result
        self.call_id = result.call_id


class CallRefusedError(ToolAgentError):
    """The call was not made and will not be."""


class AnswerPendingError(ToolAgentError):
    """The call goes on (perhaps); its result is kept."""


class BrokenOffError(ToolAgentError):
    """The batch was ended from outside."""


class ControlFailedError(Exception):
    """A tool could not be started, stopped or destroyed."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


class MakingUnreachableError(Exception):
    """Temporal does not answer, so the request may have been accepted. Repeating it with the same id is safe."""


class SessionUnreachableError(Exception):
    """Neither Temporal nor a worker answers. The request may have been accepted; repeating it with the same id or key is safe."""


class _TypedError(Exception):
    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.type = type


class SessionRefusedError(_TypedError):
    """`type` is `session_over`, or the error type of the request."""


class ChatUnreachableError(Exception):
    """Neither Temporal nor a worker answers. The message may have been accepted; sending it again with the same id is safe."""


class ChatRefusedError(_TypedError):
    """`type` is `chat_full`, or the error type of the message."""
