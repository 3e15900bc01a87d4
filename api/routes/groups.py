"""Groups of tools, and the sessions of those that have a lifecycle."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Body, Header
from starlette.requests import Request
from starlette.responses import Response

from api.documentation import JSON_BODY, UNAVAILABLE, problem_responses
from api.errors import result_response
from api.groups import found_group, opened, ran, renewed, sessions_of, shown_session, stopped
from api.ports import Injected, dependencies_of
from api.problems import ProblemKind
from api.reading.session_bodies import OpenSessionBody, SessionRunBody
from api.reading.strict_json import StrictRoute
from toolagent.contracts.calls import ErrorType, IdempotencyKey, ToolResult
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.http import GroupListing, SessionListing
from toolagent.contracts.sessions import SessionState, SessionView

router = APIRouter(tags=["groups"], route_class=StrictRoute)

_OF_SESSION = (ProblemKind.GROUP_NOT_FOUND, ProblemKind.SESSION_NOT_FOUND, ErrorType.UNAVAILABLE)


@router.get("/groups", summary="Tools that are used together", responses=UNAVAILABLE)
async def list_groups(dependencies: Injected) -> GroupListing:
    return GroupListing(groups=await dependencies.groups.list_all())


@router.get("/groups/{group_id}", summary="One group", responses=problem_responses(ProblemKind.GROUP_NOT_FOUND, ErrorType.UNAVAILABLE))
async def get_group(group_id: str, dependencies: Injected) -> ToolGroup:
    return await found_group(dependencies, group_id)


@router.post(
    "/groups/{group_id}/sessions",
    summary="Launch a session",
    status_code=HTTPStatus.CREATED,
    responses={200: {"model": SessionView, "description": "Nothing could be launched: `state` is `failed`, and `error` says why."}}
    | problem_responses(
        *JSON_BODY,
        ProblemKind.GROUP_NOT_FOUND,
        ProblemKind.NO_LIFECYCLE,
        ProblemKind.IDEMPOTENCY_CONFLICT,
        ProblemKind.TOO_MANY_SESSIONS,
        ErrorType.UNAVAILABLE,
    ),
)
async def open_session(
    group_id: str,
    request: Request,
    dependencies: Injected,
    response: Response,
    body: Annotated[OpenSessionBody | None, Body()] = None,
    idempotency_key: Annotated[
        IdempotencyKey | None, Header(alias="Idempotency-Key", description="The same key again is the same session.")
    ] = None,
) -> SessionView:
    """Answers when the session is launched (201), or could not be (200, with `state: failed` and `error`). A launch is always stopped."""
    view = await opened(dependencies, group_id, body or OpenSessionBody(), idempotency_key, request.is_disconnected)
    _say_where(response, view)
    return view


@router.get(
    "/groups/{group_id}/sessions",
    summary="The sessions of a group, the newest first",
    responses=problem_responses(ProblemKind.INVALID_REQUEST, ProblemKind.GROUP_NOT_FOUND, ErrorType.UNAVAILABLE),
)
async def list_sessions(group_id: str, dependencies: Injected, living: bool = False) -> SessionListing:
    """At most a hundred; with `living=true`, only those that have not ended."""
    return SessionListing(sessions=await sessions_of(dependencies, group_id, living=living))


@router.get("/groups/{group_id}/sessions/{session_id}", summary="One session", responses=problem_responses(*_OF_SESSION))
async def get_session(group_id: str, session_id: str, dependencies: Injected) -> SessionView:
    return await shown_session(dependencies, group_id, session_id)


@router.post(
    "/groups/{group_id}/sessions/{session_id}/run",
    summary="Make a call in a session",
    response_model=ToolResult,
    responses=problem_responses(*JSON_BODY, ProblemKind.SESSION_OVER, *_OF_SESSION),
)
async def run_in_session(group_id: str, session_id: str, body: SessionRunBody, request: Request) -> Response:
    """Status and body as of `/run_tool`. Waits until the session is launched."""
    # Without `Depends`: see `StrictRoute`.
    return result_response(await ran(dependencies_of(request), group_id, session_id, body))


@router.post(
    "/groups/{group_id}/sessions/{session_id}/renew",
    summary="Renew the lease of a session",
    responses=problem_responses(ProblemKind.SESSION_OVER, *_OF_SESSION),
)
async def renew_session(group_id: str, session_id: str, dependencies: Injected) -> SessionView:
    """Its `lease_s` begins again, as by each run. A session without a lease stays as it is."""
    return await renewed(dependencies, group_id, session_id)


@router.post("/groups/{group_id}/sessions/{session_id}/stop", summary="Stop a session", responses=problem_responses(*_OF_SESSION))
async def stop_session(group_id: str, session_id: str, dependencies: Injected) -> SessionView:
    """Answers when the provider has confirmed the stop, or after 30 seconds; the stop then goes on. Repeating it changes nothing."""
    return await stopped(dependencies, group_id, session_id)


def _say_where(response: Response, view: SessionView) -> None:
    response.headers["Location"] = f"/groups/{view.group_id}/sessions/{view.session_id}"
    response.status_code = HTTPStatus.OK if view.state is SessionState.FAILED else HTTPStatus.CREATED
