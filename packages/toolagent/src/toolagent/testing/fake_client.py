"""A client that keeps the contract of `ToolAgentClient` without a Temporal server."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from toolagent.client.failures import AnswerPendingError, CallRefusedError, ControlFailedError
from toolagent.client.handles import BatchHandle, CallHandle
from toolagent.contracts.batches import BatchEnd, BatchResult, ToolBatch
from toolagent.contracts.callbacks import CallbackState, CallbackView
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.idempotency import fingerprint, keyed_call_id
from toolagent.core.calls.results import failed, key_conflict, succeeded, task_state_of
from toolagent.testing.fake_batches import FakeBatches
from toolagent.testing.fake_chats import FakeChats
from toolagent.testing.fake_making import FakeMaking
from toolagent.testing.fake_sessions import FakeSessions

__all__ = ["FakeToolAgentClient", "Script", "echo"]

_AWAY = ToolError(type=ErrorType.UNAVAILABLE, message="Temporal does not answer.")

Script = Callable[[ToolCall, str], ToolResult | None]
"""The immediate result of a call with that id; None: the call runs until `finish` or `cancel`."""


def echo(call: ToolCall, call_id: str) -> ToolResult:
    """A success with the call's parameters."""
    return succeeded(call_id, call.tool_id, call.params, datetime.now(UTC), execution_time=0.0, metadata={})


@dataclass
class _Started:
    call: ToolCall
    at: datetime
    end: asyncio.Future[ToolResult]


@dataclass
class FakeToolAgentClient:
    """`away` simulates a Temporal server that does not answer, `control_error` a host that fails a control request.

    `controls` has the control requests. The client keeps all started calls.
    """

    script: Script = echo
    away: bool = False
    control_error: ToolError | None = None
    controls: list[ToolControl] = field(default_factory=list[ToolControl])
    _started: dict[str, _Started] = field(default_factory=dict[str, _Started])
    making: FakeMaking = field(default_factory=FakeMaking)
    sessions: FakeSessions = field(default_factory=FakeSessions)
    chats: FakeChats = field(default_factory=FakeChats)
    _batches: FakeBatches = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._batches = FakeBatches(self)

    @property
    def calls(self) -> dict[str, ToolCall]:
        """All started calls, by call id."""
        return {call_id: started.call for call_id, started in self._started.items()}

    async def run(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> ToolResult:  # noqa: ARG002 - as the client
        """Make the call and wait for its result. Raises CallRefusedError, AnswerPendingError."""
        return await (await self.start(call, call_id)).result()

    async def start(self, call: ToolCall, call_id: str | None = None) -> CallHandle:
        """Start the call. Raises CallRefusedError for another call under the same id, AnswerPendingError while away."""
        call_id = keyed_call_id(call) or call_id or f"call-{uuid.uuid4().hex}"
        self._require_presence(call_id, call.tool_id)
        known = self._started.get(call_id)
        if known is None:
            end = asyncio.get_running_loop().create_future()
            self._started[call_id] = _Started(call, datetime.now(UTC), end)
            result = self.script(call, call_id)
            if result is not None:
                end.set_result(result)
        elif fingerprint(known.call) != fingerprint(call):
            raise CallRefusedError(key_conflict(call_id, call.tool_id, datetime.now(UTC), "Another call has this id."))
        return CallHandle(call_id, call.tool_id, calls=self)

    def handle(self, call_id: str) -> CallHandle:
        """The handle of a started call."""
        return CallHandle(call_id, calls=self)

    async def run_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchResult:
        """Make all calls of a batch and wait for their results. Raises CallRefusedError, AnswerPendingError."""
        return await (await self.start_batch(batch, batch_id)).result()

    async def callback(self, task_id: str) -> CallbackView | None:
        """Always pending, since the fake delivers nothing."""
        known = self._started.get(task_id)
        return CallbackView(state=CallbackState.PENDING, event_id=f"{task_id}:ended") if known and known.call.callback_url else None

    async def start_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchHandle:
        """Start a batch. Ids and errors as in `start`."""
        self._require_presence(batch_id or "", "")
        return self.batch(await self._batches.start(batch, batch_id))

    def batch(self, batch_id: str) -> BatchHandle:
        """The handle of a started batch."""
        return BatchHandle(batch_id, wait=self._batches.result, look=self._batches.task, stop=self._batches.cancel)

    async def batch_end(self, batch_id: str) -> BatchEnd:
        """Wait for the end of a batch. Raises AnswerPendingError while away."""
        self._require_presence(batch_id, "")
        return await self._batches.end(batch_id)

    async def result(self, call_id: str, tool_id: str = "") -> ToolResult:
        """Wait for the end of a call. Raises AnswerPendingError while away."""
        self._require_presence(call_id, tool_id)
        return await asyncio.shield(self._started[call_id].end)

    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None:
        """State of a call; None when it was not started here. Raises AnswerPendingError while away.

        `workflow_id` is the id it was started with, if that is not the call id.
        """
        self._require_presence(call_id)
        started = self._started.get(workflow_id or call_id)
        if started is None:
            return None
        view = TaskView(task_id=call_id, status=TaskState.RUNNING, tool_id=started.call.tool_id, started_at=started.at)
        if not started.end.done():
            return view
        result = started.end.result()
        return view.model_copy(update={"status": task_state_of(result), "ended_at": datetime.now(UTC), "result": result})

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
        """Cancel a call; False when it was not started here. `workflow_id` as in `task`. Raises AnswerPendingError while away."""
        self._require_presence(call_id)
        started = self._started.get(workflow_id or call_id)
        if started is not None and not started.end.done():
            error = ToolError(type=ErrorType.CANCELLED, message="The call was cancelled.")
            started.end.set_result(failed(call_id, started.call.tool_id, error, datetime.now(UTC)))
        return started is not None

    async def control(self, control: ToolControl) -> ToolRoute:
        """Raises ControlFailedError with `control_error`, or while away."""
        self.controls.append(control)
        if self.away:
            raise ControlFailedError(_AWAY)
        if self.control_error is not None:
            raise ControlFailedError(self.control_error)
        if control.action is not ControlAction.START:
            return ToolRoute(tool_id=control.tool_id, host=control.host)
        endpoint = "http://127.0.0.1:52341"
        return ToolRoute(tool_id=control.tool_id, host=control.host, state=RunState.RUNNING, endpoint=endpoint, port=52341, pid=12345)

    def finish(self, call_id: str, result: ToolResult) -> None:
        """End a running call."""
        self._started[call_id].end.set_result(result)

    def _require_presence(self, call_id: str, tool_id: str = "") -> None:
        if self.away:
            raise AnswerPendingError(failed(call_id, tool_id, _AWAY, datetime.now(UTC)))
