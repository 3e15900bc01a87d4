"""The lanes of short calls."""

from fastapi import APIRouter

from api.documentation import problem_responses
from api.ports import Injected
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.lanes import LaneListing

router = APIRouter(tags=["service"])


@router.get("/lanes", summary="The lanes of all front doors that are alive", responses=problem_responses(ErrorType.UNAVAILABLE))
async def list_lanes(dependencies: Injected) -> LaneListing:
    """Figures are as old as `seen_at`. Times are by the clock of the database."""
    return LaneListing(lanes=await dependencies.lanes.alive())
