"""Failures between the service and a tool.

RuntimeFailure           carries an `ErrorType`, a message for the caller and details
├── NotSent              nothing reached the tool: another source, or another try, may follow
│   ├── StartFailed      the tool could not be built or started
│   └── NoSlot           all slots of the tool stayed taken for as long as the call would wait
└── CallFailed           the request was sent; `outcome` says whether its effect is known
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from pydantic import JsonValue

from engine.runtimes.given_secrets import without_given, without_given_value
from engine.runtimes.secrecy import find_secrets, hidden, hidden_text
from engine.validation.long_values import walked
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import JsonSchema
from toolagent.core.texts import well_formed, well_formed_value

_OURS = {
    "reason": frozenset({"stopped", "no_slot", "login_required", "question_declined"}),
    "outcome": frozenset({"executed", "failed", "unknown"}),
    "cause": frozenset(
        {"dns", "connect", "refused", "tls", "unreachable", "redirects", "encoding"}
        | {"time", "output", "memory", "processes", "levels", "disk", "file"}
        | {"server_gone", "no_answer", "garbage", "ambiguous", "not_found", "prompt_lost", "interrupted"}
    ),
}
"""Words of the service that others decide by. A caller may have a secret that is such a word."""

_NAMES = (
    *("reason", "outcome", "cause", "missing", "secret", "dependencies", "content"),
    *("status_code", "code", "data", "is_error", "errors", "path", "field"),
    *("tool_ended", "other_calls", "ended", "exit_code", "last_answer", "stderr", "host", "no_such_host"),
)
"""Names of details that others decide by."""


class RuntimeFailure(Exception):
    """A tool could not do what was asked of it; becomes the `ToolError` of the call.

    Text quoted from the tool is made well-formed, and secrets given to tools are removed.
    """

    def __init__(self, error_type: ErrorType, message: str, details: dict[str, JsonValue] | None = None) -> None:
        self.error_type = error_type
        self.message = without_given(well_formed(message))
        self.details = {well_formed(name): without_given_value(well_formed_value(value)) for name, value in (details or {}).items()}
        super().__init__(self.message)

    def hide(self, secrets: Sequence[str]) -> None:
        """Mask these in what the tool said."""
        if secrets:
            self.message = hidden_text(self.message, secrets)
            self.details = {
                name if name in _NAMES else hidden_text(name, secrets): value if _is_ours(name, value) else hidden(value, secrets)
                for name, value in self.details.items()
            }
            self.args = (self.message,)

    async def hide_secrets(self, schema: JsonSchema, params: dict[str, JsonValue]) -> None:
        """`hide` the secret parameters of the call, without blocking the event loop: a hundred in long details take half a second."""
        if secrets := await find_secrets(schema, params):
            await walked(self.details, partial(self.hide, secrets))

    def explain(self, **more: JsonValue) -> None:
        """Add details."""
        self.details |= {name: without_given_value(well_formed_value(value)) for name, value in more.items()}


class NotSent(RuntimeFailure):
    """No byte of the request reached the tool."""


class StartFailed(NotSent):
    """`dependency_error` when its environment could not be built, `unavailable` when it did not come up."""


class NoSlot(NotSent):
    """No slot of the tool (its `concurrency`) became free in time, or the tool does not run and must not be started here.

    Nothing was started; a later try may succeed.
    """

    def __init__(self, tool_id: str, waited_s: float | None) -> None:
        busy = f"The tool {tool_id!r} was busy with other calls for {waited_s or 0:g} s: it takes no more at once (`concurrency`)."
        message = busy if waited_s is not None else f"The tool {tool_id!r} is not running here, or has no slot free."
        super().__init__(ErrorType.UNAVAILABLE, message, {"reason": "no_slot"})


class CallFailed(RuntimeFailure):
    """The request was sent. `unknown`: the tool may have acted; `failed`: it answered that it failed."""

    def __init__(
        self,
        error_type: ErrorType,
        message: str,
        details: dict[str, JsonValue] | None = None,
        outcome: Literal["failed", "unknown"] = "failed",
    ) -> None:
        super().__init__(error_type, message, details)
        self.outcome = outcome


def stopped(message: str = "The tool was stopped while the call waited.") -> NotSent:
    """The failure of a call that waited while the tool was stopped: the call must not start the tool again."""
    return NotSent(ErrorType.UNAVAILABLE, message, {"reason": "stopped"})


def timed_out(timeout_s: float) -> CallFailed:
    return no_answer(f"The tool did not answer within {timeout_s:g} s.", ErrorType.TIMEOUT, timeout_s=timeout_s)


def no_answer(message: str, error_type: ErrorType = ErrorType.EXECUTION_ERROR, **details: JsonValue) -> CallFailed:
    """A failure after which it is unknown whether the tool acted."""
    return CallFailed(error_type, message, {**details, "outcome": "unknown"}, outcome="unknown")


def _is_ours(name: str, value: JsonValue) -> bool:
    return isinstance(value, str) and value in _OURS.get(name, ())
