"""Finds groups, and opens, runs, renews and stops their sessions."""

import hashlib
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TypeAlias

from api.errors import Refusal
from api.ports import Dependencies
from api.problems import ProblemKind
from api.reading.session_bodies import OpenSessionBody, SessionRunBody
from toolagent.client import names
from toolagent.client.failures import SessionRefusedError, SessionUnreachableError
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.sessions import SESSION_ID_PATTERN, OpenSession, SessionEnd, SessionRun, SessionView
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import key_conflict
from toolagent.core.suggestions import nearest
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.groups.roles import look_in
from toolagent_service.groups.sessions import NoSuchFieldError, NoSuchStepError, call_id_in, call_in, run_named, step_of

IsGone: TypeAlias = Callable[[], Awaitable[bool]]

_MAX_SHOWN = 128
_KEYED = "Ask again with the same key: it is the same request. Without one it may be done twice."


async def found_group(dependencies: Dependencies, group_id: str) -> ToolGroup:
    """Raises Refusal, with the nearest ids, for a group that does not exist."""
    group = await dependencies.groups.get(group_id) if re.fullmatch(TOOL_ID_PATTERN, group_id) else None
    if group is None:
        near = nearest(group_id[:_MAX_SHOWN], tuple(one.group_id for one in await dependencies.groups.list_all()))
        hint = f"Did you mean {', '.join(near)}?" if near else "GET /groups lists what there is."
        detail = f"There is no group {group_id[:_MAX_SHOWN]!r}. {hint}"
        raise Refusal(ProblemKind.GROUP_NOT_FOUND, detail, details={"nearest": [*near]})
    return group


async def sessions_of(dependencies: Dependencies, group_id: str, *, living: bool) -> tuple[SessionView, ...]:
    """The sessions of a group, also of a removed one: they go on until their stop. Raises Refusal."""
    known = re.fullmatch(TOOL_ID_PATTERN, group_id)
    found = await dependencies.sessions.of_group(group_id, living=living) if known else ()
    if not found:
        await found_group(dependencies, group_id)
    return found


async def found_session(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """Raises Refusal for a session that the group does not have."""
    view = await dependencies.sessions.get(session_id) if re.fullmatch(SESSION_ID_PATTERN, session_id) else None
    if view is None or view.group_id != group_id:
        await found_group(dependencies, group_id)
        detail = f"Group {group_id!r} has no session {session_id[:_MAX_SHOWN]!r}. GET /groups/{group_id}/sessions lists them."
        raise Refusal(ProblemKind.SESSION_NOT_FOUND, detail)
    return view


async def shown_session(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """The session as its workflow knows it; if Temporal does not answer, as it was at its last change of state."""
    row = await found_session(dependencies, group_id, session_id)
    if row.ended_at is not None:
        return row
    with suppress(SessionUnreachableError):
        return await dependencies.client.sessions.view(group_id, session_id) or row
    return row


async def opened(dependencies: Dependencies, group_id: str, body: OpenSessionBody, key: str | None, is_gone: IsGone) -> SessionView:
    """The session once it is launched. Its lease is renewed until then, unless the caller `is_gone`. Raises Refusal."""
    group = await found_group(dependencies, group_id)
    if not group.lifecycle:
        detail = f"Group {group_id!r} has no lifecycle: call its tools one by one, as its `usage_order` says."
        raise Refusal(ProblemKind.NO_LIFECYCLE, detail)
    if (look := look_in(group, body.params)) is not None:
        raise Refusal(ProblemKind.INVALID_REQUEST, look)
    session_id = f"session-{uuid.uuid4().hex[:16]}" if key is None else _session_for_key(group_id, body.caller.caller_id, key)
    request = OpenSession(session_id=session_id, group=group, params=body.params, caller=body.caller, lease_s=body.lease_s)
    with _refusing(_KEYED):
        view = await _begun(dependencies, request, is_gone)
    if view.end is SessionEnd.REFUSED and view.error is not None:
        raise Refusal(ProblemKind.TOO_MANY_SESSIONS, view.error.message, headers={"Retry-After": "30"})
    return view


async def _begun(dependencies: Dependencies, request: OpenSession, is_gone: IsGone) -> SessionView:
    """The session, or how one with its id ended. A session without a row found no room and launched nothing: it may be opened again.

    Raises SessionRefusedError, SessionUnreachableError, Refusal.
    """
    known = await _opened_as(dependencies, request)
    if known is not None and known.ended_at is not None:
        return known
    try:
        view = await dependencies.client.sessions.open(request, again=known is None, is_gone=is_gone)
    except SessionRefusedError as error:
        if error.type != names.SESSION_OVER or known is None:
            raise
        return await dependencies.sessions.get(request.session_id) or known
    if known is None:
        await _opened_as(dependencies, request)  # another request may have been first
    return view


async def _opened_as(dependencies: Dependencies, request: OpenSession) -> SessionView | None:
    """The session with this id, if there is one. Raises Refusal if it was opened with other params or another lease."""
    known = await dependencies.sessions.whole(request.session_id)
    if known is None:
        return None
    opened, view = known
    if (opened.params, opened.lease_s) != (request.params, request.lease_s):
        message = f"This idempotency key was used for session {request.session_id}, with other params or another lease. Choose a new one."
        raise Refusal(ProblemKind.IDEMPOTENCY_CONFLICT, message)
    return view


async def ran(dependencies: Dependencies, group_id: str, session_id: str, body: SessionRunBody) -> ToolResult:
    """The result of a run. The session is only looked up if it takes no runs. Raises Refusal."""
    if not (re.fullmatch(TOOL_ID_PATTERN, group_id) and re.fullmatch(SESSION_ID_PATTERN, session_id)):
        await found_session(dependencies, group_id, session_id)
    with _refusing(_KEYED):
        try:
            return await dependencies.client.sessions.run(group_id, session_id, SessionRun(**dict(body)))
        except SessionRefusedError as error:
            view = await found_session(dependencies, group_id, session_id)
            if error.type == names.SESSION_OVER and (earlier := await _ran_before(dependencies, session_id, body)) is not None:
                return earlier
            if error.type == ErrorType.VALIDATION_ERROR and (listed := await _listed_as(dependencies, body.tool_id)) is not None:
                return await ran(dependencies, group_id, session_id, body.model_copy(update={"tool_id": listed}))
            raise _refused(error, view) from error


async def _ran_before(dependencies: Dependencies, session_id: str, body: SessionRunBody) -> ToolResult | None:
    """The result of an earlier run with this key, of a session that takes no more runs."""
    if body.key is None or (whole := await dependencies.sessions.whole(session_id)) is None:
        return None
    call_id = call_id_in(session_id, run_named(body.key))
    record = await dependencies.calls.get(call_id)
    if record is None or record.result is None:
        return None
    request, view = whole
    tool_id = await _listed_as(dependencies, body.tool_id) or body.tool_id
    try:
        call = call_in(request, step_of(request.group, SessionRun(tool_id=tool_id)), view.launched, body.params)
    except (NoSuchStepError, NoSuchFieldError):
        return None
    return record.result if fingerprint(call) == record.fingerprint else key_conflict(call_id, call.tool_id, datetime.now(UTC))


async def _listed_as(dependencies: Dependencies, tool_id: str | None) -> str | None:
    """The tool's id in the catalog, if `tool_id` is an alias."""
    found = await dependencies.registry.find(tool_id, None) if tool_id is not None else None
    return found.manifest.tool_id if isinstance(found, ToolEntry) and found.manifest.tool_id != tool_id else None


async def renewed(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """The session with a new lease. Raises Refusal."""
    view = await found_session(dependencies, group_id, session_id)
    with _refusing(view=view):
        return await dependencies.client.sessions.renew(group_id, session_id)


async def stopped(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """The session after its stop. An ended session stays as it is. Raises Refusal."""
    view = await found_session(dependencies, group_id, session_id)
    with _refusing():
        return view if view.ended_at else await _stopped(dependencies, view)


async def _stopped(dependencies: Dependencies, view: SessionView) -> SessionView:
    """Raises SessionRefusedError, SessionUnreachableError."""
    try:
        return await dependencies.client.sessions.stop(view.group_id, view.session_id)
    except SessionRefusedError:
        # It ended meanwhile, or its workflow was ended from outside. Then stop what it launched now, before the sweep finds it.
        whole = await dependencies.sessions.whole(view.session_id)
        if whole is None or whole[1].ended_at is not None:
            return whole[1] if whole is not None else view
        life = SessionLife(request=whole[0], view=whole[1], end=SessionEnd.ASKED).model_dump(mode="json", exclude_defaults=True)
        return await dependencies.client.sessions.stop_left(view.group_id, view.session_id, life)


@contextmanager
def _refusing(advice: str = "Ask again.", view: SessionView | None = None) -> Generator[None]:
    """Raises Refusal for the errors of the client of sessions. `view` is the session, if known."""
    try:
        yield
    except SessionUnreachableError as error:
        raise Refusal(ErrorType.UNAVAILABLE, f"{error} {advice}", headers={"Retry-After": "1"}) from error
    except SessionRefusedError as error:
        raise _refused(error, view) from error


def _refused(error: SessionRefusedError, view: SessionView | None) -> Refusal:
    if error.type == names.SESSION_OVER:
        ended = f"Session {view.session_id} is {view.state}. Open another one." if view is not None and view.ended_at is not None else ""
        return Refusal(ProblemKind.SESSION_OVER, ended or str(error))
    if error.type == ErrorType.VALIDATION_ERROR:
        return Refusal(ProblemKind.INVALID_REQUEST, str(error))
    return Refusal(ErrorType.EXECUTION_ERROR, str(error))


def _session_for_key(group_id: str, caller_id: str | None, key: str) -> str:
    return f"session-{hashlib.sha256(json.dumps([group_id, caller_id, key]).encode()).hexdigest()[:40]}"
