"""The use of a group by another workflow, as its child.

The session is a child of this workflow. If this workflow ends in any way, the session is asked to stop, and is not ended.
"""

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError

from toolagent.client import names
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sessions import GroupUse, OpenSession, SessionAccount
from toolagent_service import stubs
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.groups.roles import look_in
from workflows import options
from workflows.groups.steps import required_step
from workflows.groups.tool_group import ToolGroup
from workflows.inputs import input_of, malformed


@workflow.defn(name=names.USE_GROUP)
class UseGroup:
    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> SessionAccount:
        """Takes a `GroupUse` as plain JSON. Fails for an unknown group, one without a lifecycle, and an unknown step."""
        use = input_of(GroupUse, given, surplus)
        group = await workflow.execute_local_activity(stubs.find_group, use.group_id, **options.session_note(f"find {use.group_id}"))
        if group is None:
            message = f"There is no group {use.group_id!r}. GET /groups lists what there is."
            raise ApplicationError(message, type=ErrorType.TOOL_NOT_FOUND.value, non_retryable=True)
        if (look := look_in(group, use.params)) is not None:
            raise malformed(look)
        for asked in use.runs:
            required_step(group, asked)
        session_id = f"session-{workflow.uuid4().hex}"
        request = OpenSession(session_id=session_id, group=group, params=use.params, caller=use.caller, runs=use.runs)
        try:
            return await workflow.execute_child_workflow(
                ToolGroup.run,
                SessionLife(request=request).model_dump(mode="json", exclude_defaults=True),
                id=names.session_workflow(group.group_id, session_id),
                parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL,
                cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                static_summary=group.group_id,
            )
        except ChildWorkflowError as error:
            # Callers read the type of what failed: it lies as deep whether this workflow or the session has found it.
            if isinstance(error.cause, ApplicationError):
                raise error.cause from error
            raise
