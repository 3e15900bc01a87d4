"""The audit of sandboxed programs."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.documentation import problem_responses
from api.forms import Moment
from api.ports import Injected
from api.problems import ProblemKind
from toolagent.contracts.audit import AuditPage
from toolagent.contracts.identifiers import ToolId

router = APIRouter(tags=["service"])


@router.get("/audit", summary="What sandboxed programs did", responses=problem_responses(ProblemKind.INVALID_REQUEST))
async def get_audit(
    dependencies: Injected,
    tool_id: Annotated[ToolId | None, Query(description="Only runs of this tool.")] = None,
    since: Annotated[
        Moment | None, Query(description="Only runs that began at this time or later, such as `2026-03-26T10:30:00Z`.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The newest so many.")] = 100,
) -> AuditPage:
    """One entry for each run on the host that answers, the newest first; parameters and commands are masked and cut."""
    return await dependencies.audit.read(tool_id, since, limit)
