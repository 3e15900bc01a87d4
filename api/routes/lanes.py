"""The lanes of short calls."""

from fastapi import APIRouter

from api.documentation import UNAVAILABLE
from api.ports import Injected
from toolagent.contracts.lanes import LaneListing

router = APIRouter(tags=["service"])


@router.get("/lanes", summary="The lanes of all front doors that are alive", responses=UNAVAILABLE)
async def list_lanes(dependencies: Injected) -> LaneListing:
    """Figures are as old as `seen_at`. Times are by the clock of the database."""
    return LaneListing(lanes=await dependencies.lanes.alive())
