"""Calling many tools at once."""

from fastapi import APIRouter
from starlette.responses import Response

from api.batches import TakenBatch, batch_answer
from api.documentation import JSON_BODY, SUCCESS, answer_of, problem_responses
from api.ports import Injected
from api.reading.strict_json import StrictRoute
from toolagent.contracts.batches import BatchResult
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.http import TaskAccepted

router = APIRouter(tags=["calls"], route_class=StrictRoute)

_BATCH_ID = "batch-5f0c8e0a7d3b4c4f9c0f2d1f6a3b7e21"
_ENDED = BatchResult(batch_id=_BATCH_ID, total=1, succeeded=1, failed=0, results=(SUCCESS,))


@router.post(
    "/run_tools",
    summary="Call many tools",
    response_model=BatchResult,
    responses={
        **problem_responses(*JSON_BODY),
        200: answer_of("All calls have ended, in whatever way: each result says how.", _ENDED, BatchResult),
        202: answer_of(
            "`mode: async`: the batch goes on under this id (also in `Location`).",
            {"task_id": _BATCH_ID, "status": "pending"},
            TaskAccepted,
        ),
        409: {"model": ToolResult, "description": "The idempotency key was used for another batch (`rejected`, `idempotency_conflict`)."},
        503: {"model": ToolResult, "description": f"`{ErrorType.UNAVAILABLE.value}`: the batch goes on, or may; ask for it by its id."},
    },
)
async def run_tools(batch: TakenBatch, dependencies: Injected) -> Response:
    """Each call is a task, `/tasks/{call_id}`. The results are in the order of the calls; the status is 200 also if some failed."""
    return await batch_answer(dependencies, batch)
