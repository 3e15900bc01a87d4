"""Calling tools."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.calls import ChosenId, IdHeader, KeyHeader, Selected, answer, selection, selection_of, take
from api.documentation import JSON_BODY, SUCCESS, answer_of, call_responses
from api.ports import Injected, dependencies_of
from api.reading.bodies import RunToolBody
from api.reading.strict_json import StrictRoute
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.http import Selection, TaskAccepted

router = APIRouter(tags=["calls"], route_class=StrictRoute)


@router.post(
    "/run_tool",
    summary="Call a tool",
    response_model=ToolResult,
    responses={
        **call_responses(ToolResult, SUCCESS, lambda result: result, *JSON_BODY),
        202: answer_of(
            "`mode: async`: the call goes on under this id (also in `Location`).",
            {"task_id": SUCCESS.call_id, "status": "pending"},
            TaskAccepted,
        ),
    },
)
async def run_tool(body: RunToolBody, request: Request, idempotency_key: KeyHeader = None, x_call_id: IdHeader = None) -> Response:
    """The tool is started if it does not run. The call's id is in the header `X-Call-Id` of every answer."""
    dependencies = dependencies_of(request)  # without `Depends`: see `StrictRoute`
    return await answer(dependencies.client, await take(body, dependencies, ChosenId(idempotency_key, x_call_id)))


@router.post(
    "/select_tool",
    summary="Call a tool, in the form of the first interface",
    response_model=Selection,
    responses=call_responses(Selection, selection_of(SUCCESS), selection_of, *JSON_BODY),
)
async def select_tool(taken: Selected, dependencies: Injected) -> Response:
    """As `/run_tool`. The answer has only status, result and error."""
    return await selection(dependencies.client, taken)
