"""Synchronising with KnowHub."""

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

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
        """May be repeated. Raises ApplicationError when KnowHub cannot be read; Temporal tries again where that may help."""
        async with beating():
            try:
                return await self._syncing.run(request)
            except KnowHubError as error:
                raise ApplicationError(
                    str(error),
                    type=step_names.KNOWHUB_AWAY,
                    non_retryable=not error.is_passing,
                    category=ApplicationErrorCategory.BENIGN,
                ) from None
