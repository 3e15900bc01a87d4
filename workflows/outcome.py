"""The outcome of a call or a task as a search attribute: in Temporal's UI, the workflow of a failed call is `Completed`.

Workers get the interceptor only if the server knows the attribute: an unregistered one would fail workflow tasks for ever.
"""

from temporalio import workflow
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from toolagent.client import names
from toolagent.contracts.batches import BatchedState, BatchEnd
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.making import MakeEnd

_PATCH = "outcome"


class OutcomeInterceptor(Interceptor):
    """Sets the search attribute when a workflow ends."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: ARG002 - its name is the SDK's
        return _SaysOutcome


def outcome_of(result: object) -> str | None:
    """`success` or the error's type of a call or batch, the state of a task; None for other results."""
    match result:
        case ToolResult():
            return result.error.type.value if result.error else result.status
        case MakeEnd():
            return result.status.value
        case BatchEnd():
            return _of_batch(result)
        case _:
            return None


class _SaysOutcome(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> object:
        result: object = await super().execute_workflow(input)
        outcome = outcome_of(result)
        # Workflows that ended before this patch are replayed for queries.
        if outcome is not None and workflow.patched(_PATCH):
            workflow.upsert_search_attributes([names.OUTCOME.value_set(outcome)])
        return result


def _of_batch(end: BatchEnd) -> str:
    if end.error is not None:
        return end.error.type.value
    if end.cancelled:
        return "cancelled"
    return "success" if all(call.state is BatchedState.SUCCESS for call in end.calls) else "error"
