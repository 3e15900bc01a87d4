"""The service at a glance."""

from fastapi import APIRouter

from api.documentation import UNAVAILABLE
from api.ports import Injected
from api.views.system import system_status
from toolagent.contracts.system import SystemStatus

router = APIRouter(tags=["service"])


@router.get("/system/status", summary="Tools, tasks, groups, sessions and hosts at a glance", responses=UNAVAILABLE)
async def get_system_status(dependencies: Injected) -> SystemStatus:
    """The service at a glance. `/health` says whether it is ready, `/tasks` lists all tasks."""
    return await system_status(dependencies)
