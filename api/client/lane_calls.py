"""The client of a front door with a lane for short calls.

All other calls have a workflow each.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from api.client.guarded_calls import GuardedCalls
from api.ports import LaneDoor
from toolagent.client.call_ids import new_call_id
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.client.handles import CallHandle
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.idempotency import keyed_call_id
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.lanes import Elsewhere, LanePendingError, LaneRefusedError

_STARTED_S, _LOOK_S = 2.0, 0.05
"""How long a cancelled call of another door may take to get a workflow, and the pause between two looks for that."""


class LaneCalls:
    """`calls` makes the calls that have a workflow. All methods raise as those of `calls`."""

    def __init__(self, calls: GuardedCalls, door: LaneDoor) -> None:
        self._calls, self._door = calls, door
        self.making, self.chats, self.sessions = calls.making, calls.chats, calls.sessions
        self.callback, self.control = calls.callback, calls.control
        self.start_batch, self.batch, self.batch_end = calls.start_batch, calls.batch, calls.batch_end

    async def run(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> ToolResult:
        """The result of the call. `is_new`: no other call has this id. Raises CallRefusedError, AnswerPendingError."""
        own, has_own = _id_of(call, call_id)
        is_new = has_own or (is_new and call.idempotency_key is None)
        with _answered():
            async with self._calls.recorded(own, call.tool_id):
                answer = await self._door.make(call, own, is_new=is_new)
        match answer:
            case Elsewhere(call_id=str(begun), has_begun=True):
                return await self._calls.result(begun, call.tool_id)
            case Elsewhere(call_id=wanted, claimed_at=claimed_at):
                async with self._accepted(wanted, claimed_at):
                    return await self._calls.run(call, wanted or call_id, is_new=is_new and wanted is None)
            case result:
                return result

    async def start(self, call: ToolCall, call_id: str | None = None) -> CallHandle:
        own, is_new = _id_of(call, call_id)
        if is_new:
            return await self._calls.start(call)
        with _answered():
            async with self._calls.recorded(own, call.tool_id):
                claimed_at = await self._door.accept(call, own)
        async with self._accepted(own, claimed_at):
            return await self._calls.start(call, own)

    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None:
        """The state of a call; None if it has no workflow, and no door is making it. Raises AnswerPendingError."""
        view = await self._calls.task(call_id, workflow_id)
        if view is None and (tool_id := await self._door.tool_of_accepted(call_id)) is not None:
            return TaskView(task_id=call_id, status=TaskState.RUNNING, tool_id=tool_id)
        return view

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
        """Ask a call to end; False if no door or workflow has it. An ended call stays as it is. Raises AnswerPendingError."""
        try:
            if await self._door.cancel(call_id):
                return True
            # A door that makes the call sees its claim sooner than a message by Temporal, which may be away.
            is_claimed = await self._door.cancel_elsewhere(call_id)
        except StoreUnavailableError:
            # The call may have a workflow, which is told also while the database is away.
            await self._calls.cancel(call_id, workflow_id)
            raise
        is_told = await self._calls.cancel(call_id, workflow_id)
        if is_told or not is_claimed:
            return is_told
        # Another door has the call: it ends soon, or gets a workflow soon.
        for _ in range(round(_STARTED_S / _LOOK_S)):
            await asyncio.sleep(_LOOK_S)
            if await self._calls.cancel(call_id) or await self._door.tool_of_accepted(call_id) is None:
                break
        return True

    @asynccontextmanager
    async def _accepted(self, call_id: str | None, claimed_at: str) -> AsyncGenerator[None]:
        """Withdraws the claim of a call that is refused in the block. Calls accepted earlier go on."""
        try:
            yield
        except CallRefusedError:
            if call_id is not None and claimed_at:
                await self._door.withdraw(call_id, claimed_at)
            raise


def _id_of(call: ToolCall, call_id: str | None) -> tuple[str, bool]:
    """The id of the call, and whether the id is new."""
    keyed = keyed_call_id(call)
    return keyed or call_id or new_call_id(), keyed is None and call_id is None


@contextmanager
def _answered() -> Generator[None]:
    try:
        yield
    except LaneRefusedError as error:
        raise CallRefusedError(error.result) from error
    except LanePendingError as error:
        raise AnswerPendingError(error.result) from error
