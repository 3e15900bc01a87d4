"""The client of a front door with a lane: short calls go there, all others have a workflow of their own."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from api.client.guarded_calls import GuardedCalls
from api.ports import LaneDoor
from toolagent.client.call_ids import new_call_id
from toolagent.client.chats import Chats
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.client.handles import BatchHandle, CallHandle
from toolagent.client.making import Making
from toolagent.client.sessions import Sessions
from toolagent.contracts.batches import BatchEnd, ToolBatch
from toolagent.contracts.callbacks import CallbackView
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.idempotency import keyed_call_id
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.lanes import Elsewhere, LanePendingError, LaneRefusedError

_STARTED_S, _LOOK_S = 2.0, 0.05
"""How long a call that is to end may take to get the workflow that is told so, and how often it is looked for."""


class LaneCalls:
    """`calls` is the client for calls with a workflow of their own. Raises as that one does."""

    def __init__(self, calls: GuardedCalls, door: LaneDoor) -> None:
        self._calls, self._door = calls, door

    @property
    def making(self) -> Making:
        return self._calls.making

    @property
    def chats(self) -> Chats:
        return self._calls.chats

    @property
    def sessions(self) -> Sessions:
        return self._calls.sessions

    async def run(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> ToolResult:
        """Make the call and wait for its result. `is_new`: nobody else has this id. Raises CallRefusedError, AnswerPendingError."""
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
        """How far a call is; None when it has no workflow, and no door has it in hand. Raises AnswerPendingError."""
        view = await self._calls.task(call_id, workflow_id)
        if view is None and (tool_id := await self._door.tool_in_hand(call_id)) is not None:
            return TaskView(task_id=call_id, status=TaskState.RUNNING, tool_id=tool_id)
        return view

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
        """Ask a call to end; False when nobody has it. One that has ended stays as it is. Raises AnswerPendingError."""
        try:
            if await self._door.cancel(call_id):
                return True
            # A door that makes it looks at its claim more often than it hears from Temporal, which may be away.
            is_claimed = await self._door.cancel_elsewhere(call_id)
        except StoreUnavailableError:
            # So may the database be: what has a workflow is told all the same.
            await self._calls.cancel(call_id, workflow_id)
            raise
        is_told = await self._calls.cancel(call_id, workflow_id)
        if is_told or not is_claimed:
            return is_told
        # Another door has it: the call ends soon, or has a workflow soon.
        for _ in range(round(_STARTED_S / _LOOK_S)):
            await asyncio.sleep(_LOOK_S)
            if await self._calls.cancel(call_id) or await self._door.tool_in_hand(call_id) is None:
                break
        return True

    @asynccontextmanager
    async def _accepted(self, call_id: str | None, claimed_at: str) -> AsyncGenerator[None]:
        """Who is refused in the block has nothing accepted; what was accepted earlier goes on."""
        try:
            yield
        except CallRefusedError:
            if call_id is not None and claimed_at:
                await self._door.withdraw(call_id, claimed_at)
            raise

    async def callback(self, task_id: str) -> CallbackView | None:
        return await self._calls.callback(task_id)

    async def start_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchHandle:
        return await self._calls.start_batch(batch, batch_id)

    def batch(self, batch_id: str) -> BatchHandle:
        return self._calls.batch(batch_id)

    async def batch_end(self, batch_id: str) -> BatchEnd:
        return await self._calls.batch_end(batch_id)

    async def control(self, control: ToolControl) -> ToolRoute:
        return await self._calls.control(control)


def _id_of(call: ToolCall, call_id: str | None) -> tuple[str, bool]:
    """The id of the call, and whether nobody else can have it."""
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
