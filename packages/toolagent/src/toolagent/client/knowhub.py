"""Synchronisations with KnowHub over Temporal."""

from datetime import timedelta

from temporalio.client import Client, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy

from toolagent.client import names
from toolagent.client.failures import MakingUnreachableError
from toolagent.client.patience import reached
from toolagent.contracts.knowhub import KnowHubSync, SyncRequest, SyncStatus

__all__ = ["KnowHubSyncs"]

_LONGEST = timedelta(minutes=5)


class KnowHubSyncs:
    """Starts synchronisations. While one runs, a request for the same kind (dry or not) joins it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def run(self, *, dry_run: bool = False) -> KnowHubSync:
        """Run a synchronisation and wait for its end. Raises MakingUnreachableError."""
        with reached(MakingUnreachableError):
            try:
                found: KnowHubSync = await self._client.execute_workflow(
                    names.SYNC_KNOWHUB,
                    SyncRequest(dry_run=dry_run),
                    id=f"{names.KNOWHUB_SCHEDULE}-{'planned' if dry_run else 'asked'}",
                    task_queue=names.TASK_QUEUE,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    execution_timeout=_LONGEST,
                    result_type=KnowHubSync,
                )
            except WorkflowFailureError as error:
                return KnowHubSync(status=SyncStatus.FAILED, said=f"It did not end: {error.cause}")
            return found
