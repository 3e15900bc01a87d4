"""Whether the service is ready."""

from fastapi import APIRouter
from starlette.responses import Response

from api.documentation import answer_of, problem_responses
from api.ports import Injected
from api.views.readiness import health
from toolagent.contracts.http import Health

router = APIRouter(tags=["service"])

_NOT_READY = Health(status="unavailable", checks={"temporal": "does not answer (RPCError)", "database": "ok", "worker": "ok"})


@router.get(
    "/health",
    summary="What is ready and what is not",
    response_model=Health,
    responses={
        **problem_responses(),
        200: {
            "content": {"application/json": {"example": {"status": "ok", "checks": {"temporal": "ok", "database": "ok", "worker": "ok"}}}}
        },
        503: answer_of("Something is not ready; its reason says why.", _NOT_READY, Health),
    },
)
async def get_health(dependencies: Injected) -> Response:
    """Needs no key. Takes three seconds at most."""
    return await health(dependencies.checks, dependencies.longest_pause(), dependencies.lane_figures())
