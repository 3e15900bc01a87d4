"""The machines that run tools."""

from fastapi import APIRouter

from api.documentation import problem_responses
from api.ports import Injected
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.hosts import HostListing

router = APIRouter(tags=["service"])


@router.get("/hosts", summary="The hosts that run tools, and whether they are alive", responses=problem_responses(ErrorType.UNAVAILABLE))
async def list_hosts(dependencies: Injected) -> HostListing:
    """A host that stops says so and is gone from here; one that died is shown for a day. Times are by the clock of the database."""
    return HostListing(hosts=await dependencies.hosts.list_all())
