"""The machines that run tools, and draining one of them."""

from fastapi import APIRouter

from api.documentation import UNAVAILABLE, problem_responses
from api.ports import Injected
from api.problems import ProblemKind
from api.views.hosts import progress_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.hosts import HostDrain, HostListing

router = APIRouter(tags=["service"])

_ONE_HOST = problem_responses(ProblemKind.HOST_NOT_FOUND, ErrorType.UNAVAILABLE)


@router.get("/hosts", summary="The hosts that run tools, and whether they are alive", responses=UNAVAILABLE)
async def list_hosts(dependencies: Injected) -> HostListing:
    """A host that stops is removed from the list; a host that died is shown for a day. Times are by the clock of the database."""
    return await dependencies.hosts.listing()


@router.post("/hosts/{host}/drain", summary="Drain a host", responses=_ONE_HOST)
async def drain_host(host: str, dependencies: Injected) -> HostDrain:
    """The host takes no new calls from its next heartbeat on. Running calls end, then its tools stop. Repeating it changes nothing.

    The mark outlives the host's process; `DELETE` removes it. Sessions of groups on the host keep their tools there.
    """
    return await progress_of(host, dependencies.hosts.drain)


@router.get("/hosts/{host}/drain", summary="How far a host has drained", responses=_ONE_HOST)
async def get_drain(host: str, dependencies: Injected) -> HostDrain:
    """With `is_drained`, the host may be stopped."""
    return await progress_of(host, dependencies.hosts.progress)


@router.delete("/hosts/{host}/drain", summary="Let a host take calls again", responses=_ONE_HOST)
async def undrain_host(host: str, dependencies: Injected) -> HostDrain:
    """The host takes calls from its next heartbeat on. Nothing changes for a host that does not drain."""
    return await progress_of(host, dependencies.hosts.undrain)
