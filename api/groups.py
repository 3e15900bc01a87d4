"""From a request about a group to its session."""

import hashlib
import json
import re
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
    """Raises Refusal that names the nearest ones."""
    group = await dependencies.groups.get(group_id) if re.fullmatch(TOOL_ID_PATTERN, group_id) else None
    if group is None:
        near = nearest(group_id[:_MAX_SHOWN], tuple(one.group_id for one in await dependencies.groups.list_all()))
        hint = f"Did you mean {', '.join(near)}?" if near else "GET /groups lists what there is."
        detail = f"There is no group {group_id[:_MAX_SHOWN]!r}. {hint}"
        raise Refusal(ProblemKind.GROUP_NOT_FOUND, detail, details={"nearest": [*near]})
    return group


async def sessions_of(dependencies: Dependencies, group_id: str, *, living: bool) -> tuple[SessionView, ...]:
    """Also of a group that was removed: its sessions go on to their stop. Raises Refusal."""
    known = re.fullmatch(TOOL_ID_PATTERN, group_id)
    found = await dependencies.sessions.of_group(group_id, living=living) if known else ()
    if not found:
        await found_group(dependencies, group_id)
    return found


async def found_session(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """Raises Refusal."""
    view = await dependencies.sessions.get(session_id) if re.fullmatch(SESSION_ID_PATTERN, session_id) else None
    if view is None or view.group_id != group_id:
        await found_group(dependencies, group_id)
        detail = f"Group {group_id!r} has no session {session_id[:_MAX_SHOWN]!r}. GET /groups/{group_id}/sessions lists them."
        raise Refusal(ProblemKind.SESSION_NOT_FOUND, detail)
    return view


async def shown_session(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """As its workflow knows it, with its runs and why it ends; where that cannot be asked, as it was at its last change of state."""
    row = await found_session(dependencies, group_id, session_id)
    if row.ended_at is not None:
        return row
    with suppress(SessionUnreachableError):
        return await dependencies.client.sessions.view(group_id, session_id) or row
    return row


async def opened(dependencies: Dependencies, group_id: str, body: OpenSessionBody, key: str | None, is_gone: IsGone) -> SessionView:
    """The session once it is launched; whether the caller `is_gone` decides whether its lease is renewed until then. Raises Refusal."""
    group = await found_group(dependencies, group_id)
    if not group.lifecycle:
        detail = f"Group {group_id!r} has no lifecycle: call its tools one by one, as its `usage_order` says."
        raise Refusal(ProblemKind.NO_LIFECYCLE, detail)
    if (look := look_in(group, body.params)) is not None:
        raise Refusal(ProblemKind.INVALID_REQUEST, look)
    session_id = f"session-{uuid.uuid4().hex[:16]}" if key is None else _session_for_key(group_id, body.caller.caller_id, key)
    request = OpenSession(session_id=session_id, group=group, params=body.params, caller=body.caller, lease_s=body.lease_s)
    try:
        view = await _begun(dependencies, request, is_gone)
    except SessionUnreachableError as error:
        raise _away(error, _KEYED) from error
    except SessionRefusedError as error:
        raise _refused(error) from error
    if view.end is SessionEnd.REFUSED and view.error is not None:
        raise Refusal(ProblemKind.TOO_MANY_SESSIONS, view.error.message, headers={"Retry-After": "30"})
    return view


async def _begun(dependencies: Dependencies, request: OpenSession, is_gone: IsGone) -> SessionView:
    """The session, or how one with its id ended. One without a row found no room and launched nothing: it may come again.

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
        await _opened_as(dependencies, request)  # somebody else's may have come first
    return view


async def _opened_as(dependencies: Dependencies, request: OpenSession) -> SessionView | None:
    """The session with this id, if there is one. Raises Refusal where it was asked for with something else."""
    known = await dependencies.sessions.whole(request.session_id)
    if known is None:
        return None
    opened, view = known
    if (opened.params, opened.lease_s) != (request.params, request.lease_s):
        message = f"This idempotency key was used for session {request.session_id}, with other params or another lease. Choose a new one."
        raise Refusal(ProblemKind.IDEMPOTENCY_CONFLICT, message)
    return view


async def ran(dependencies: Dependencies, group_id: str, session_id: str, body: SessionRunBody) -> ToolResult:
    """Raises Refusal. Only a session that takes no runs is looked for."""
    if not (re.fullmatch(TOOL_ID_PATTERN, group_id) and re.fullmatch(SESSION_ID_PATTERN, session_id)):
        await found_session(dependencies, group_id, session_id)
    try:
        return await dependencies.client.sessions.run(group_id, session_id, SessionRun(**dict(body)))
    except SessionUnreachableError as error:
        raise _away(error, _KEYED) from error
    except SessionRefusedError as error:
        view = await found_session(dependencies, group_id, session_id)
        if error.type == names.SESSION_OVER and (earlier := await _ran_before(dependencies, session_id, body)) is not None:
            return earlier
        if error.type == ErrorType.VALIDATION_ERROR and (listed := await _listed_as(dependencies, body.tool_id)) is not None:
            return await ran(dependencies, group_id, session_id, body.model_copy(update={"tool_id": listed}))
        raise _refused(error, view) from error


async def _ran_before(dependencies: Dependencies, session_id: str, body: SessionRunBody) -> ToolResult | None:
    """What a session that takes no runs any more has answered under this key."""
    whole = await dependencies.sessions.whole(session_id) if body.key is not None else None
    if whole is None or body.key is None:
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
    """The id in the catalog of a tool that has another one, too."""
    found = await dependencies.registry.find(tool_id, None) if tool_id is not None else None
    return found.manifest.tool_id if isinstance(found, ToolEntry) and found.manifest.tool_id != tool_id else None


async def renewed(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """Raises Refusal."""
    view = await found_session(dependencies, group_id, session_id)
    try:
        return await dependencies.client.sessions.renew(group_id, session_id)
    except SessionUnreachableError as error:
        raise _away(error) from error
    except SessionRefusedError as error:
        raise _refused(error, view) from error


async def stopped(dependencies: Dependencies, group_id: str, session_id: str) -> SessionView:
    """Raises Refusal. A session that has ended stays as it is."""
    view = await found_session(dependencies, group_id, session_id)
    try:
        return view if view.ended_at else await _stopped(dependencies, view)
    except SessionUnreachableError as error:
        raise _away(error) from error
    except SessionRefusedError as error:
        raise _refused(error) from error


async def _stopped(dependencies: Dependencies, view: SessionView) -> SessionView:
    """Raises SessionRefusedError, SessionUnreachableError."""
    try:
        return await dependencies.client.sessions.stop(view.group_id, view.session_id)
    except SessionRefusedError:
        # It ended meanwhile, or somebody has ended its workflow: then what it launched is stopped now, not when the sweep finds it.
        whole = await dependencies.sessions.whole(view.session_id)
        if whole is None or whole[1].ended_at is not None:
            return whole[1] if whole is not None else view
        life = SessionLife(request=whole[0], view=whole[1], end=SessionEnd.ASKED).model_dump(mode="json", exclude_defaults=True)
        return await dependencies.client.sessions.stop_left(view.group_id, view.session_id, life)


def _refused(error: SessionRefusedError, view: SessionView | None = None) -> Refusal:
    if error.type == names.SESSION_OVER:
        ended = f"Session {view.session_id} is {view.state}. Open another one." if view is not None and view.ended_at is not None else ""
        return Refusal(ProblemKind.SESSION_OVER, ended or str(error))
    if error.type == ErrorType.VALIDATION_ERROR:
        return Refusal(ProblemKind.INVALID_REQUEST, str(error))
    return Refusal(ErrorType.EXECUTION_ERROR, str(error))


def _away(error: SessionUnreachableError, advice: str = "Ask again.") -> Refusal:
    return Refusal(ErrorType.UNAVAILABLE, f"{error} {advice}", headers={"Retry-After": "1"})


def _session_for_key(group_id: str, caller_id: str | None, key: str) -> str:
    return f"session-{hashlib.sha256(json.dumps([group_id, caller_id, key]).encode()).hexdigest()[:40]}"
