"""The outcome of a call, a batch or a task is visible, and can be searched for, in Temporal's UI."""

import pytest
from temporalio.client import Client

from tests.workflows.call_paths import failure_said, outcome_said
from tests.workflows.call_paths import fast as outcome_not_said
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.contracts.batches import BatchedCall, BatchedState, BatchEnd
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.making import MakeEnd
from toolagent.contracts.tasks import TaskState
from workflows.outcome import outcome_of

ECHOED = BatchedCall(call_id="call-1", tool_id="echo", state=BatchedState.SUCCESS)
LATE = ToolError(type=ErrorType.TIMEOUT, message="It took too long.")


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (ToolResult(status="success", call_id="call-1", tool_id="echo"), "success"),
        (ToolResult(status="error", call_id="call-1", tool_id="echo", error=LATE), "timeout"),
        (MakeEnd(task_id="create_a1b2c3d4", status=TaskState.FAILED), "failed"),
        (BatchEnd(batch_id="batch-1", calls=(ECHOED,)), "success"),
        (BatchEnd(batch_id="batch-1", calls=(ECHOED, ECHOED.model_copy(update={"state": BatchedState.SKIPPED}))), "error"),
        (BatchEnd(batch_id="batch-1", calls=(ECHOED,), cancelled=True), "cancelled"),
        (BatchEnd(batch_id="batch-1", error=LATE), "timeout"),
        ({"not": "ours"}, None),
    ],
)
def test_each_result_has_the_outcome_that_is_searched_for(result: object, outcome: str | None) -> None:
    assert outcome_of(result) == outcome


async def said(handle: AnyHandle) -> str | None:
    return (await handle.describe()).typed_search_attributes.get(names.OUTCOME)


async def test_a_call_that_failed_is_told_apart_from_one_that_did_not(temporal: Client) -> None:
    assert await said(await outcome_said(Stage(temporal, "outcome-of-success"))) == "success"
    assert await said(await failure_said(Stage(temporal, "outcome-of-failure"))) == "tool_not_found"


async def test_without_the_attribute_a_call_ends_as_before(temporal: Client) -> None:
    assert await said(await outcome_not_said(Stage(temporal, "outcome-not-said"))) is None
