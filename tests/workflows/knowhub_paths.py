"""The paths of synchronisations with KnowHub."""

from collections.abc import Mapping

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.knowhub import KnowHubSync, SyncRequest, SyncStatus
from toolagent_service import step_names

__all__ = ["PATHS", "sync_knowhub"]


@activity.defn(name=step_names.SYNC_KNOWHUB)
async def sync_knowhub(request: SyncRequest) -> KnowHubSync:
    """A dry run finds KnowHub away."""
    if request.dry_run:
        raise ApplicationError("KnowHub answers 404.", non_retryable=True, category=ApplicationErrorCategory.BENIGN)
    return KnowHubSync(status=SyncStatus.DONE, said="0 links.")


async def _play(stage: Stage, request: SyncRequest) -> AnyHandle:
    async with stage.workers([]):
        handle = await stage.start(names.SYNC_KNOWHUB, request, workflow_id=f"knowhub-{stage.queue}")
        await handle.result()
    return handle


async def done(stage: Stage) -> AnyHandle:
    return await _play(stage, SyncRequest())


async def away(stage: Stage) -> AnyHandle:
    return await _play(stage, SyncRequest(dry_run=True))


PATHS: Mapping[str, Walk] = {"done": Walk(done, ""), "away": Walk(away, "")}
