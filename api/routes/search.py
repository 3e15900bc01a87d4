"""Finding tools."""

from fastapi import APIRouter

from api.dependencies import Injected
from api.documentation import problem_responses
from api.problems import ProblemKind
from api.reading.bodies import SearchToolsBody
from api.reading.strict_json import StrictRoute
from api.views.tools import matches_for
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.http import Matches

__all__ = ["router"]

router = APIRouter(tags=["tools"], route_class=StrictRoute)


@router.post(
    "/search_tools",
    summary="Find tools by words and category",
    responses=problem_responses(
        ProblemKind.MALFORMED_JSON,
        ProblemKind.INVALID_REQUEST,
        ProblemKind.BODY_TOO_LARGE,
        ProblemKind.UNSUPPORTED_MEDIA_TYPE,
        ErrorType.UNAVAILABLE,
    ),
)
async def search_tools(wanted: SearchToolsBody, dependencies: Injected) -> Matches:
    """The best match first. An empty body object finds all tools."""
    return await matches_for(dependencies, wanted)
