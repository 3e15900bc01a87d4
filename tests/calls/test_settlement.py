"""How a call ends."""

from typing import TYPE_CHECKING

from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.contracts.steps import Admitted, CallPlan, Finished, SettleRequest
from toolagent.core.schemas import MASK

if TYPE_CHECKING:
    from tests.calls.conftest import Desk


async def stitch(desk: "Desk") -> CallPlan:
    (desk.root / "a.png").write_bytes(b"x")
    admission = await desk.admit("stitch", {"images": ["a.png"], "token": "sesame"})
    assert isinstance(admission, Admitted)
    return admission.plan


async def test_an_output_that_fits_is_a_success(desk: "Desk") -> None:
    outcome = Finished(output={"image": "file_1"}, execution_time=0.5, host="h1", active_source=0)
    result = await desk.settlements.settle(SettleRequest(plan=await stitch(desk), outcome=outcome, workflow_id="w", run_id="r"))
    assert (result.status, result.result, result.execution_time) == ("success", {"image": "file_1"}, 0.5)
    assert result.metadata == {"version": "1.0.0", "host": "h1", "active_source": 0, "fast": False}


async def test_an_output_that_breaks_its_schema_is_an_error_that_says_the_tool_ran(desk: "Desk") -> None:
    result = await desk.settlements.settle(
        SettleRequest(plan=await stitch(desk), outcome=Finished(output={"picture": 1}), workflow_id="w", run_id="r")
    )
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.OUTPUT_VALIDATION_ERROR, {"outcome": "executed"})
    assert [issue.path for issue in result.validation_errors] == ["$"]


async def test_the_tools_error_is_kept(desk: "Desk") -> None:
    error = ToolError(type=ErrorType.TIMEOUT, message="too slow", details={"outcome": "unknown"})
    result = await desk.settlements.settle(
        SettleRequest(plan=await stitch(desk), outcome=Finished(error=error), workflow_id="w", run_id="r")
    )
    assert (result.status, result.error, result.error_type) == ("error", error, ErrorType.TIMEOUT)


async def test_secrets_do_not_reach_the_record(desk: "Desk") -> None:
    plan = await stitch(desk)
    await desk.settlements.settle(SettleRequest(plan=plan, outcome=Finished(), workflow_id="w", run_id="r"))
    record = await desk.calls.get(plan.call_id)
    assert record is not None
    assert record.params["token"] == MASK
