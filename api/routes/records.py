"""Records of calls."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.documentation import problem_responses
from api.errors import bad_field
from api.forms import NO_NUL
from api.ports import Injected
from api.problems import ProblemKind
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.identifiers import ToolId
from toolagent.contracts.usage import CallListing

router = APIRouter(tags=["calls"])

_LISTED = problem_responses(ProblemKind.INVALID_REQUEST, ErrorType.UNAVAILABLE)


@router.get("/calls", summary="The calls of a conversation or a tool, counted", responses=_LISTED)
async def list_calls(
    dependencies: Injected,
    conversation_id: Annotated[
        str | None, Query(min_length=1, max_length=200, pattern=NO_NUL, description="Only calls whose `caller` has it.")
    ] = None,
    tool_id: Annotated[ToolId | None, Query(description="Only calls of this tool.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The newest so many.")] = 100,
) -> CallListing:
    """At least one of `conversation_id` and `tool_id` is needed. `/tasks/{call_id}` has the result of a call."""
    if conversation_id is None and tool_id is None:
        raise bad_field("conversation_id", "Give it, or a tool_id: whose calls are wanted?")
    return await dependencies.usage.of_calls(conversation_id, tool_id, limit)
