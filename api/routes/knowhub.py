"""KnowHub, whose resources and our tools name each other."""

from fastapi import APIRouter

from api.documentation import JSON_BODY, problem_responses
from api.ports import Injected
from api.reading.bodies import SyncKnowHubBody
from api.reading.strict_json import StrictRoute
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.knowhub import KnowHubSync

router = APIRouter(tags=["tools"], route_class=StrictRoute)


@router.post(
    "/knowhub/sync",
    summary="Have KnowHub's resources and our tools name each other",
    responses=problem_responses(*JSON_BODY, ErrorType.UNAVAILABLE),
)
async def sync_knowhub(body: SyncKnowHubBody, dependencies: Injected) -> KnowHubSync:
    """`status` says how it ended: `off` where no KnowHub is set, `failed` where it could not be read, `partly`, `done`, `planned`."""
    return await dependencies.knowhub.run(dry_run=body.dry_run)
