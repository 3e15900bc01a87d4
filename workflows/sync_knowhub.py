"""Synchronises KnowHub's resources and our tools."""

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from toolagent.client import names
from toolagent.contracts.knowhub import KnowHubSync, SyncRequest, SyncStatus
from toolagent_service import stubs
from workflows import options
from workflows.inputs import input_of


@workflow.defn(name=names.SYNC_KNOWHUB)
class SyncKnowHub:
    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> KnowHubSync:
        """Takes a `SyncRequest` as plain JSON; invalid input fails at once. If KnowHub is away, the result says so."""
        request = input_of(SyncRequest, given, surplus)
        try:
            done = await workflow.execute_activity(stubs.sync_knowhub, request, **options.sync_knowhub())
        except ActivityError as error:
            cause = error.cause
            done = KnowHubSync(status=SyncStatus.FAILED, said=cause.message if isinstance(cause, ApplicationError) else f"{cause or error}")
        workflow.set_current_details(done.said)
        return done
