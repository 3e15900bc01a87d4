"""The workflow of a front door's lane, seen from the door."""

import asyncio
import time
from collections.abc import Awaitable
from contextlib import suppress
from datetime import timedelta

from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from toolagent_service import step_names
from toolagent_service.calls.lanes import BatchRefusedError, LaneUnreachableError, door_queue, lane_id
from toolagent_service.contracts.lanes import LaneBatch, LaneEnds

_TASK_TIMEOUT = timedelta(seconds=1)
"""How long the lane stands still after its worker was killed."""

_PATIENCE = timedelta(seconds=10)
_SILENCES, _SILENT_S = 2, 15.0
"""The lane is started anew after this many refused batches in a row, over this time. Our own process may have stood still during one,
or during two that were under way together, which count as one.
"""

_CLOSING_S = 2.0
_ASKED, _DRAINS_S = 40, 0.05
"""How often a batch is sent while one run of the lane ends and the next begins, and the pause between, in seconds."""


class LaneWorkflow:
    """Starts the workflow if it is missing or was ended, and starts it anew if it does not answer."""

    def __init__(self, client: Client, door: str) -> None:
        self._client, self.workflow_id, self._queue = client, lane_id(door), door_queue(door)
        self._is_started, self._silences, self._silent_at, self._judged_at = False, 0, 0.0, 0.0
        self.is_open = False
        """Whether the workflow may exist."""

    async def send(self, batch: LaneBatch) -> bool:
        """Returns when the workflow has finished the batch: whether its run is about to end. Raises LaneUnreachableError,
        BatchRefusedError.
        """
        for _ in range(_ASKED):
            if (ends := await self._taken(batch)) is not None:
                return ends.is_ending
            await asyncio.sleep(_DRAINS_S)
        raise LaneUnreachableError("The lane has not gone on in a new run.")

    async def _taken(self, batch: LaneBatch) -> LaneEnds | None:
        """None if the run of the lane is about to end."""
        began_at = time.monotonic()
        try:
            if not self._is_started:
                await self._start()
                began_at = time.monotonic()
            ends = await self._update(batch)
        except TimeoutError as error:
            self._note_silence(began_at)
            raise LaneUnreachableError("Temporal did not say in time what became of a batch.") from error
        except WorkflowUpdateFailedError as error:
            if isinstance(error.cause, ApplicationError) and error.cause.type == step_names.LANE_DRAINS:
                return None
            raise BatchRefusedError(f"A batch failed: {error.cause}") from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                self._is_started = False
            elif error.status is RPCStatusCode.FAILED_PRECONDITION:  # it is paused, for example
                self._note_silence(began_at)
            kind = BatchRefusedError if error.status is RPCStatusCode.INVALID_ARGUMENT else LaneUnreachableError
            raise kind(f"Temporal did not take a batch ({error.status.name}).") from error
        self._silences = 0
        return ends

    async def _update(self, batch: LaneBatch) -> LaneEnds:
        """Raises TimeoutError, and errors of the SDK."""
        handle = self._client.get_workflow_handle(self.workflow_id)
        try:
            # With a time-out per request alone, the SDK would ask forever while the server answers in time that there is no outcome yet.
            async with asyncio.timeout(_PATIENCE.total_seconds()):
                return await handle.execute_update(step_names.TAKE, batch, result_type=LaneEnds)
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError from error  # the SDK raises one error for both
            raise TimeoutError from error

    @property
    def _is_stuck(self) -> bool:
        return self._silences >= _SILENCES and time.monotonic() - self._silent_at >= _SILENT_S

    def _note_silence(self, began_at: float) -> None:
        if began_at < self._judged_at:
            return
        self._judged_at = time.monotonic()
        if not self._silences:
            self._silent_at = began_at
        self._silences += 1
        self._is_started = self._is_started and not self._is_stuck

    async def close(self) -> None:
        """End the workflow, while its worker still runs. Raises LaneUnreachableError, and then stays open."""
        if not self.is_open:
            return
        handle = self._client.get_workflow_handle(self.workflow_id)
        await _told(handle.signal(step_names.CLOSE, rpc_timeout=_PATIENCE))
        try:
            with suppress(WorkflowFailureError):  # it was ended from outside
                await asyncio.wait_for(handle.result(), _CLOSING_S)
        except (TimeoutError, RPCError):
            # Its worker is too busy, and will stop soon. After that, nothing could end it.
            await self.terminate()
        self.is_open = False

    async def terminate(self) -> None:
        """End the workflow of a door that is gone, together with its worker. Raises LaneUnreachableError."""
        handle = self._client.get_workflow_handle(self.workflow_id)
        await _told(handle.terminate(reason="Its front door is gone.", rpc_timeout=_PATIENCE))

    async def _start(self) -> None:
        self.is_open = True
        policy = WorkflowIDConflictPolicy.TERMINATE_EXISTING if self._is_stuck else WorkflowIDConflictPolicy.USE_EXISTING
        await self._client.start_workflow(
            step_names.CALL_LANE,
            id=self.workflow_id,
            task_queue=self._queue,
            id_conflict_policy=policy,
            task_timeout=_TASK_TIMEOUT,
            static_summary="short calls, in batches",
            rpc_timeout=_PATIENCE,
        )
        self._is_started, self._silences, self._judged_at = True, 0, time.monotonic()


async def _told(asked: Awaitable[None]) -> None:
    try:
        await asked
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise LaneUnreachableError(f"Temporal did not end a lane ({error.status.name}).") from error
