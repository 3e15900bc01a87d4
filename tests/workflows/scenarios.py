"""The important paths through every workflow, played on a real server with scripted steps; recorded and compared."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client, WorkflowHistory

from tests.workflows import (
    agent_paths,
    batch_paths,
    call_paths,
    callback_paths,
    chat_paths,
    control_paths,
    create_paths,
    knowhub_paths,
    lane_paths,
    maintain_paths,
    repair_paths,
    session_paths,
)
from tests.workflows.ends import Walk
from tests.workflows.making_steps import slots
from tests.workflows.stage import Stage
from toolagent.client import names
from toolagent_service import step_names

__all__ = ["SCENARIOS", "Scenario", "play"]

SLOW = frozenset({"placed-elsewhere", "one-is-silent", "lost-with-its-host"})
"""These take as long as our patience with a silent host (half a minute), or with its heartbeats."""

_TASK = timedelta(seconds=60)
"""By default a task whose local activities take eight seconds is cut in two on a busy machine: then it issues other commands."""

AT_ONCE = 12
"""More only make each other late."""


@dataclass(frozen=True)
class Scenario:
    """A path through a workflow."""

    workflow: str
    path: str
    walk: Walk

    @property
    def name(self) -> str:
        return f"{self.workflow}-{self.path}"

    @property
    def slow(self) -> bool:
        return self.path in SLOW


_PATHS = {
    names.INVOKE_TOOL: {**call_paths.PATHS, **session_paths.CALLS},
    step_names.CALL_LANE: lane_paths.PATHS,
    names.CONTROL_TOOL: control_paths.PATHS,
    names.RUN_TOOLS: batch_paths.PATHS,
    names.DELIVER_CALLBACK_WORKFLOW: callback_paths.PATHS,
    names.CREATE_TOOL: create_paths.PATHS,
    names.REPAIR_TOOL: repair_paths.PATHS,
    names.CODING_AGENT: agent_paths.PATHS,
    names.SERVICE_AGENT: chat_paths.PATHS,
    names.TOOL_GROUP: session_paths.PATHS,
    names.USE_GROUP: session_paths.USES,
    names.MAINTAIN: maintain_paths.PATHS,
    names.SYNC_KNOWHUB: knowhub_paths.PATHS,
}

SCENARIOS = tuple(Scenario(workflow, path, walk) for workflow, paths in _PATHS.items() for path, walk in paths.items())


async def play(client: Client, scenarios: Iterable[Scenario]) -> dict[str, WorkflowHistory]:
    """Play them, some concurrently. Returns the histories by the names of the scenarios."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(scenario: Scenario) -> tuple[str, WorkflowHistory]:
        async with room:
            try:
                handle = await scenario.walk.play(Stage(client, scenario.name.lower(), _TASK))
            except Exception as error:
                error.add_note(f"This was the path {scenario.name}.")
                raise
            return scenario.name, await handle.fetch_history()

    async with (
        batch_paths.children(client),
        slots(client),
        maintain_paths.served(client, knowhub_paths.sync_knowhub),
        chat_paths.served(client),
        asyncio.TaskGroup() as group,
    ):
        playing = [group.create_task(one(scenario)) for scenario in scenarios]
    return dict(task.result() for task in playing)
