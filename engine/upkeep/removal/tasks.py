"""Ends tasks that lost their workflow, and removes files of tasks that ended or moved to another host."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

import structlog
from pydantic import ValidationError

from engine.making.workbench.bench import Workbenches
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.failures import StartFailed
from engine.store.evidence import EvidenceTable
from engine.store.tasks import Ending, TaskTable
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError

_EVERY_S = 60.0
_NOTHING = "Nothing it made can be called. Ask for it again."

WorkflowEnd = Callable[[str], Awaitable[tuple[Ending, str] | None]]
"""How the workflow of a task ended, and why; None while it runs.

Raises ConnectionError if Temporal does not answer, UnreadableEndError if the end of this workflow cannot be read.
"""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class UnreadableEndError(Exception):
    """The end of a workflow cannot be read."""


class TaskSweep:
    """Every host looks at all workflows, and at its own files. `benches` and `environments` belong to `host`."""

    def __init__(
        self,
        end_of: WorkflowEnd,
        tasks: TaskTable,
        evidence: EvidenceTable,
        benches: Workbenches,
        environments: ScriptEnvironments,
        host: str,
    ) -> None:
        self._end_of, self._tasks, self._evidence = end_of, tasks, evidence
        self._benches, self._environments, self._host = benches, environments, host

    async def run(self) -> None:
        """One round. Raises StoreUnavailableError, OSError (ConnectionError included)."""
        for task_id in await self._tasks.unended():
            try:
                await self._look_after(task_id)
            except (UnreadableEndError, ValidationError) as error:
                # One bad task must not block the others.
                _log.warning("task_not_looked_after", task=task_id, reason=str(error))
        await self.clear()

    async def _look_after(self, task_id: str) -> None:
        how = await self._end_of(task_id)
        if how is not None:
            # The task may have registered tools and ended before that was recorded.
            made = await self._evidence.callable_of(task_id)
            reason = f"{how[1]} {_left(made)}"
            _log.warning("ended_task_without_workflow", task=task_id, reason=reason)
            await self._tasks.settle(task_id, how[0], reason, tool_ids=[*made])

    async def clear(self) -> None:
        """Removes files and processes of tasks that ended, or run on another host now."""
        # In this order: the row of a bench that exists already tells where its task is.
        present = await self._benches.present()
        for task_id in sorted(present - await self._tasks.on_host(self._host)):
            try:
                await self._environments.drop(task_id)
                await self._benches.clear(task_id)
            except (StartFailed, OSError) as error:
                _log.warning("task_not_cleared", task=task_id, reason=str(error))
            else:
                _log.info("cleared_task", task=task_id)


def _left(made: Mapping[str, str]) -> str:
    """`made`: callable versions, by tool."""
    named = ", ".join(f"{tool_id} {version}" for tool_id, version in made.items())
    return f"What it had registered by then can be called: {named}." if made else _NOTHING


def sweeping_tasks(sweep: TaskSweep, every_s: float = _EVERY_S) -> AbstractAsyncContextManager[None]:
    """Sweeps now and every minute until the block ends."""

    async def once() -> None:
        try:
            await sweep.run()
        except (StoreUnavailableError, OSError) as error:
            _log.info("tasks_not_swept", reason=str(error))

    return repeated(once, every_s, "sweep tasks")
