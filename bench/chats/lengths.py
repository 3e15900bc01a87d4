"""How long the histories of a chat are on Temporal, run by run."""

from dataclasses import dataclass

from temporalio.client import Client

from toolagent.client import names


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a chat's workflow."""

    events: int
    bytes: int


async def runs_of(temporal: str, chat_id: str) -> list[Run]:
    """The first of them first."""
    client = await Client.connect(temporal)
    found = [run async for run in client.list_workflows(f"WorkflowId = '{names.chat_workflow(chat_id)}'")]
    runs: list[Run] = []
    for run in sorted(found, key=lambda one: one.start_time):
        about = (await client.get_workflow_handle(run.id, run_id=run.run_id).describe()).raw_description.workflow_execution_info
        runs.append(Run(about.history_length, about.history_size_bytes))
    return runs
