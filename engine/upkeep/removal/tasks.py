"""Abandoned tasks: those whose workflow is gone are ended; files of tasks that ended or moved are removed from this host."""

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
"""How the workflow of a task ended, and why; None while it goes on.

Raises ConnectionError when it cannot be known now, UnreadableEndError when it cannot be said of this one.
"""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class UnreadableEndError(Exception):
    """How the workflow of one task ended cannot be told."""


class TaskSweep:
    """Of all hosts each looks after all workflows, and after what is on itself. `benches` and `environments` are those of `host`."""

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
        """Once. Raises StoreUnavailableError, OSError: also when the state of workflows cannot be known."""
        for task_id in await self._tasks.unended():
            try:
                await self._look_after(task_id)
            except (UnreadableEndError, ValidationError) as error:
                # A failure of one must not stop the others.
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


def _left(made: Mapping[str, str]) -> str:
    """`made`: versions that can be called, by tool."""
    named = ", ".join(f"{tool_id} {version}" for tool_id, version in made.items())
    return f"What it had registered by then can be called: {named}." if made else _NOTHING


def sweeping_tasks(sweep: TaskSweep, every_s: float = _EVERY_S) -> AbstractAsyncContextManager[None]:
    """Now and every minute until the block ends."""

    async def once() -> None:
        try:
            await sweep.run()
        except (StoreUnavailableError, OSError) as error:
            _log.info("tasks_not_swept", reason=str(error))

    return repeated(once, every_s, "sweep tasks")
