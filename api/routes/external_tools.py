"""Tables of tools on other hosts."""

from fastapi import APIRouter

from api.documentation import JSON_BODY, UNAVAILABLE, problem_responses
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.bodies import RegisterTableBody
from api.reading.strict_json import StrictRoute
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.external_tables import ExternalTable, ExternalTables, RemovedTable

router = APIRouter(tags=["tools"], route_class=StrictRoute)

_ONE_TABLE = problem_responses(ProblemKind.TABLE_NOT_FOUND, ErrorType.UNAVAILABLE)


@router.get("/external_tools", summary="The external tool tables", responses=UNAVAILABLE)
async def list_external_tools(dependencies: Injected) -> ExternalTables:
    """The tables by source, each with the outcome of its last fetch."""
    return await dependencies.tables.list_all()


@router.post(
    "/external_tools/register",
    summary="Register a table of tools on another host",
    responses=problem_responses(
        *JSON_BODY, ErrorType.SECURITY_ERROR, ProblemKind.TABLE_EXISTS, ProblemKind.SERVER_NOT_REACHED, ErrorType.UNAVAILABLE
    ),
)
async def register_external_tools(body: RegisterTableBody, dependencies: Injected) -> ExternalTable:
    """The table is fetched at once. Its tools have the ids `<source>:<id>`. The key becomes a secret."""
    return await dependencies.tables.register(body.source, body.tools_url, body.api_key)


@router.post("/external_tools/{source}/refresh", summary="Fetch an external tool table again", responses=_ONE_TABLE)
async def refresh_external_tools(source: str, dependencies: Injected) -> ExternalTable:
    """If the fetch fails, the earlier tools stay, and `error` says why."""
    return await dependencies.tables.refresh(source)


@router.delete("/external_tools/{source}", summary="Remove an external tool table", responses=_ONE_TABLE)
async def remove_external_tools(source: str, dependencies: Injected) -> RemovedTable:
    """Its tools and its key are removed too."""
    return await dependencies.tables.remove(source)
