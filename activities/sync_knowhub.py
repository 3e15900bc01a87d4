"""Synchronises the catalog with KnowHub."""

from temporalio import activity

from activities.failures import expected
from activities.heartbeats import beating
from engine.knowhub.client import KnowHubError
from engine.knowhub.sync import KnowHubSyncing
from toolagent.contracts.knowhub import KnowHubSync, SyncRequest
from toolagent_service import step_names


class SyncKnowHub:
    def __init__(self, syncing: KnowHubSyncing) -> None:
        self._syncing = syncing

    @activity.defn(name=step_names.SYNC_KNOWHUB)
    async def sync_knowhub(self, request: SyncRequest) -> KnowHubSync:
        """Idempotent. Raises ApplicationError if KnowHub cannot be read; Temporal retries what may pass."""
        async with beating():
            try:
                return await self._syncing.run(request)
            except KnowHubError as error:
                raise expected(str(error), step_names.KNOWHUB_AWAY, is_final=not error.is_passing) from None
