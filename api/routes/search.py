"""Finding tools."""

from fastapi import APIRouter

from api.documentation import JSON_BODY, problem_responses
from api.ports import Injected
from api.reading.bodies import SearchToolsBody
from api.reading.strict_json import StrictRoute
from api.views.tools import matches_for
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.http import BriefMatches, Matches

router = APIRouter(tags=["tools"], route_class=StrictRoute)


@router.post(
    "/search_tools",
    summary="Find tools by a need, in words",
    responses=problem_responses(
        *JSON_BODY,
        ErrorType.UNAVAILABLE,
    ),
)
async def search_tools(wanted: SearchToolsBody, dependencies: Injected) -> Matches | BriefMatches:
    """The best match first: exact ids and names, then matches by words and meanings. An empty body object finds all tools."""
    return await matches_for(dependencies, wanted)
