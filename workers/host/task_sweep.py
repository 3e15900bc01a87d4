"""Tasks that nobody works at any more: those whose workflow is gone end, and what ended or moved away leaves this host."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import structlog
from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from engine.making.workbench.bench import Workbenches
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.failures import StartFailed
from engine.store.evidence import EvidenceTable
from engine.store.tasks import Ending, TaskTable
from toolagent.client.patience import is_away
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import StoreUnavailableError

__all__ = ["TaskSweep", "sweeping_tasks"]

_EVERY_S = 60.0
_NOTHING = "Nothing it made can be called. Ask for it again."
_UNKNOWN = "Temporal does not know it any more, so nobody works at it."
_GOES_ON = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW)

_REASONS: dict[WorkflowExecutionStatus, str] = {
    WorkflowExecutionStatus.TERMINATED: "Its workflow was terminated on Temporal.",
    WorkflowExecutionStatus.TIMED_OUT: "Its workflow ran into a time limit that somebody gave it on Temporal.",
    WorkflowExecutionStatus.CANCELED: "It was cancelled.",
    WorkflowExecutionStatus.COMPLETED: "Its workflow has ended, and nobody wrote down how.",
}

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class TaskSweep:
    """Of all hosts each looks after all workflows, and after what is on itself. `benches` and `environments` are those of `host`."""

    def __init__(
        self,
        client: Client,
        tasks: TaskTable,
        evidence: EvidenceTable,
        benches: Workbenches,
        environments: ScriptEnvironments,
        host: str,
    ) -> None:
        self._client, self._tasks, self._evidence = client, tasks, evidence
        self._benches, self._environments, self._host = benches, environments, host

    async def run(self) -> None:
        """Once. Raises RPCError when Temporal does not answer, StoreUnavailableError, OSError."""
        for task_id in await self._tasks.unended():
            try:
                await self._look_after(task_id)
            except (ValidationError, RPCError) as error:
                if is_away(error):
                    raise
                # What is wrong with one is no reason to leave the others.
                _log.warning("task_not_looked_after", task=task_id, reason=str(error))
        await self.clear()

    async def _look_after(self, task_id: str) -> None:
        how = await self._end_of(task_id)
        if how is not None:
            # It may have been cut off when it was registered already, and before that was written down.
            made = await self._evidence.callable_of(task_id)
            reason = f"{how[1]} {_left(made)}"
            _log.warning("ended_task_without_workflow", task=task_id, reason=reason)
            await self._tasks.settle(task_id, how[0], reason, tool_ids=[*made])

    async def clear(self) -> None:
        """End and remove what is here of tasks that have ended, or are done on another host by now."""
        # In this order: what is there already was begun before, so its row says where the task is.
        present = await self._benches.present()
        for task_id in sorted(present - await self._tasks.on_host(self._host)):
            try:
                await self._environments.drop(task_id)
                await self._benches.clear(task_id)
            except (StartFailed, OSError) as error:
                _log.warning("task_not_cleared", task=task_id, reason=str(error))
            else:
                _log.info("cleared_task", task=task_id)

    async def _end_of(self, task_id: str) -> tuple[Ending, str] | None:
        handle = self._client.get_workflow_handle(task_id)
        try:
            status = (await handle.describe()).status
            if status is WorkflowExecutionStatus.FAILED:
                await handle.result()
        except WorkflowFailureError as failure:
            return TaskState.FAILED, f"Its workflow failed: {failure.cause}."
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return TaskState.FAILED, _UNKNOWN
            raise
        if status is None or status in _GOES_ON:
            return None
        is_cancelled = status is WorkflowExecutionStatus.CANCELED
        return TaskState.CANCELLED if is_cancelled else TaskState.FAILED, _REASONS.get(status, f"Its workflow ended: {status.name}.")


def _left(made: Mapping[str, str]) -> str:
    """`made`: versions that can be called, by tool."""
    named = ", ".join(f"{tool_id} {version}" for tool_id, version in made.items())
    return f"What it had registered by then can be called: {named}." if made else _NOTHING


@asynccontextmanager
async def sweeping_tasks(sweep: TaskSweep, every_s: float = _EVERY_S) -> AsyncGenerator[None]:
    """Now and every minute until the block ends. One that is cut off is gone on with by the next one."""
    task = asyncio.create_task(_again_and_again(sweep, every_s), name="sweep tasks")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _again_and_again(sweep: TaskSweep, every_s: float) -> None:
    while True:
        try:
            await sweep.run()
        except (StoreUnavailableError, RPCError, OSError) as error:
            _log.info("tasks_not_swept", reason=str(error))
        await asyncio.sleep(every_s)
