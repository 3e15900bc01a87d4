"""Rules of a session: the parameters of its calls, what their results mean for it, and when it ends."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from pydantic import JsonValue

from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.groups import GroupRole, GroupStep, ToolGroup, VerifyProbe
from toolagent.contracts.identifiers import CALL_ID_PATTERN
from toolagent.contracts.sessions import OpenSession, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.calls.results import TOO_LARGE, failed
from toolagent.core.digests import id_of

GONE = "gone"
"""`details.reason` of a stop that found nothing to stop."""

LOOKS = 7
"""How often, within a minute, a provider must deny a launch before it counts as not made."""

_LAUNCHES = 3
_NOT_FOUND = (404, 410)
_NOWHERE = "not_found"
_REFUSED = (400, 401, 402, 403, 405, 413, 415, 422, 429)
"""Status codes of servers that did nothing. A tuple, because `details` of a tool may hold values that cannot be hashed."""

_ACCOUNT_BYTES = 1_700_000
"""Bytes of JSON of all results. Temporal allows 2 MiB, which the result of the launch shares."""

_LONGEST_PAUSE = timedelta(minutes=5)
_NEVER_H = 1e6
"""More hours than any session lives. Later ends would overflow a date."""
_LOST = frozenset(
    {ErrorType.TIMEOUT, ErrorType.EXECUTION_ERROR, ErrorType.OUTPUT_VALIDATION_ERROR, ErrorType.CANCELLED, ErrorType.UNAVAILABLE}
)
"""Errors of launches that may have succeeded nevertheless."""
_ACTED = ("executed", "unknown")
"""`details.outcome` of launches that may have succeeded, whatever the type of the error."""


class NoSuchFieldError(ValueError):
    """A binding names a field that the result does not have."""

    def __init__(self, path: str) -> None:
        super().__init__(f"The launch's result has no field {path!r}, which the group's `bindings` name. Correct the group, or the tool.")


class NoSuchStepError(ValueError):
    """No step of the group matches, or several do."""


def call_id_in(session_id: str, name: str) -> str:
    """The id of a call of the session. The same name is the same call, in every run of its workflow."""
    return id_of("call-", session_id, name)


def run_named(key: str) -> str:
    """The name of a run with this key."""
    return f"run {key}"


def call_in(
    session: OpenSession, step: GroupStep, launched: JsonValue, params: Mapping[str, JsonValue], timeout_s: float | None = None
) -> ToolCall:
    """The call of a step. The caller cannot change bound params. Raises NoSuchFieldError."""
    given = {**step.params, **params, **bound(step, launched)}
    return ToolCall(tool_id=step.tool_id, params=given, timeout_s=timeout_s, caller=session.caller)


def bound(step: GroupStep, launched: JsonValue) -> dict[str, JsonValue]:
    """The params that the step takes from the result of the launch. Raises NoSuchFieldError."""
    return {name: field_of(launched, path) for name, path in step.bindings.items()}


def step_of(group: ToolGroup, run: SessionRun) -> GroupStep:
    """The step that a run means. Raises NoSuchStepError."""
    steps = [step for step in group.steps if step.role is GroupRole.RUN]
    wanted = [step for step in steps if run.tool_id in {None, step.tool_id}]
    if len(wanted) != 1:
        names = ", ".join(step.tool_id for step in steps) or "none"
        asked = f"{run.tool_id!r} does not run in it" if run.tool_id else "`tool_id` is missing"
        raise NoSuchStepError(f"Group {group.group_id!r}: {asked}; these do: {names}.")
    return wanted[0]


def the_step(group: ToolGroup, role: GroupRole) -> GroupStep:
    """The step with this role, which every lifecycle has. Raises NoSuchStepError."""
    if (step := group.step(role)) is None:
        raise NoSuchStepError(f"Group {group.group_id!r} has no step that does {role.value!r}.")
    return step


def field_of(result: JsonValue, path: str) -> JsonValue:
    """`$.server_id` of a result. Raises NoSuchFieldError."""
    found = result
    for name in path.split(".")[1:]:
        if not isinstance(found, dict) or name not in found:
            raise NoSuchFieldError(path)
        found = found[name]
    return found


def found_launch(probe: VerifyProbe, items: Sequence[JsonValue], call_id: str) -> JsonValue:
    """The item that this call launched; None if the provider does not run it."""
    return next((item for item in items if _field(item, probe.launched_by) == call_id), None)


def items_of(probe: VerifyProbe, result: ToolResult) -> Sequence[JsonValue] | None:
    """What the provider runs, according to a probe that lists everything; None if it did not answer."""
    if result.error is not None or result.is_reference:
        return None
    items = _field(result.result, probe.items)
    return items if isinstance(items, list) else None


def launcher_of(probe: VerifyProbe, item: JsonValue) -> str | None:
    """The id of the call that launched the item, as the item names it."""
    named = _field(item, probe.launched_by)
    return named if isinstance(named, str) and re.fullmatch(CALL_ID_PATTERN, named) else None


def identity_of(group: ToolGroup, item: JsonValue) -> JsonValue:
    """The params with which the item would be stopped; the whole item if it lacks them."""
    try:
        return bound(the_step(group, GroupRole.STOP), item) or item
    except NoSuchFieldError:
        return item


def listed_by(probe: VerifyProbe, item: JsonValue, views: Iterable[SessionView]) -> tuple[SessionView, ...]:
    """The sessions that launched the item, by the probe's `launch_id`: for lists that do not name the call."""
    try:
        named = field_of(item, probe.launch_id)
    except NoSuchFieldError:
        return ()
    return tuple(view for view in views if launched_by(probe, (view,)) == (named,))


def launched_by(probe: VerifyProbe, views: Iterable[SessionView]) -> tuple[JsonValue, ...]:
    """The launches of these sessions, as the probe names them."""
    found: list[JsonValue] = []
    for view in views:
        with suppress(NoSuchFieldError):
            found += [field_of(view.launched, probe.launch_id)] if view.launched is not None else []
    return tuple(found)


def looked_up(request: OpenSession, view: SessionView, probe: VerifyProbe, call_id: str, others: Sequence[JsonValue]) -> ToolCall:
    """The call of the probe."""
    if probe.asks is None:
        return ToolCall(tool_id=probe.tool_id, params=probe.params, caller=request.caller)
    if request.adopts is not None:
        launch = request.adopts.call.params
    else:
        launch = {**the_step(request.group, GroupRole.LAUNCH).params, **request.params}
    params = {**probe.params, **launch, probe.asks: call_id}
    if probe.others is not None:
        params[probe.others] = [*others]
    if probe.since is not None:
        params[probe.since] = view.opened_at.isoformat()
    return ToolCall(tool_id=probe.tool_id, params=params, caller=request.caller)


def seen_in(probe: VerifyProbe, result: ToolResult, call_id: str) -> JsonValue:
    """The launch of this call in the probe's answer. False: the provider has none; None: it did not say."""
    if probe.asks is not None:
        if result.error is not None:
            return False if _details(result).get("cause") == _NOWHERE else None
        return (result.result or None) if not result.is_reference else None
    if (items := items_of(probe, result)) is None:
        return None
    found = found_launch(probe, items, call_id)
    return False if found is None else found


def is_unlisted(group: ToolGroup, probe: VerifyProbe, listed: ToolResult, view: SessionView, *, strictly: bool = True) -> bool:
    """Whether the list of everything has no trace of the session: neither its call, nor an item that its stop would stop.

    A stop without bindings stops any item: then, `strictly`, each item must name a launch that is not of the session.
    """
    items = items_of(probe, listed)
    if items is None:
        return False
    mine = identity_of(group, view.launched)
    is_named = view.launch_call_id is not None and found_launch(probe, items, view.launch_call_id) is not None
    if is_named or any(identity_of(group, item) == mine for item in items):
        return False
    unsaid = {None, *launch_ids_of(view.session_id, None)}
    return not strictly or bool(the_step(group, GroupRole.STOP).bindings) or all(launcher_of(probe, item) not in unsaid for item in items)


def was_made(result: ToolResult) -> bool:
    """Whether the tool did something. A refused call did not."""
    return result.error is None or (_details(result).get("sent") is not False and result.error.type in _LOST)


def may_have_launched(result: ToolResult, *, by_outcome: bool = True) -> bool:
    """Whether the failed launch may have launched something.

    No, if its details say `stopped: true` or `launched: false`, or if it was refused (401, 402, 429, …). Yes, if the call was sent
    several times: that answer is to the last request only. Yes, `by_outcome`, if its details say `outcome: unknown` or `executed`: then
    the refusal came after the launch.
    """
    told = _details(result)
    if result.error is None:
        return False
    if told.get("sends", 1) != 1:
        return True
    if told.get("sent") is False or told.get("stopped") is True or told.get("launched") is False:
        return False
    return (by_outcome and told.get("outcome") in _ACTED) or (was_made(result) and told.get("status_code") not in _REFUSED)


def can_stop(group: ToolGroup, launch: ToolResult) -> bool:
    """Whether the result of the launch has what the stop needs: it is no reference, and has the fields."""
    return launch.error is None and not launch.is_reference and is_stoppable(group, launch.result)


def is_stoppable(group: ToolGroup, launched: JsonValue) -> bool:
    """Whether the result has the fields that the stop takes."""
    try:
        bound(the_step(group, GroupRole.STOP), launched)
    except NoSuchFieldError:
        return False
    return True


def is_gone(result: ToolResult) -> bool:
    """Whether there is nothing left to stop."""
    details = _details(result)
    return result.error is None or details.get("reason") == GONE or details.get("status_code") in _NOT_FOUND


def pause_of(attempts: int) -> timedelta:
    """The pause before the next stop, or the next probe."""
    return min(timedelta(seconds=2 ** min(attempts, 10)), _LONGEST_PAUSE)


def cost_usd(group: ToolGroup, view: SessionView, now: datetime) -> float:
    """The cost since the launch, by the group's price of an hour. Never less than before, even if a clock was set back.

    Of a launch under way, the cost is not known yet.
    """
    if view.state is SessionState.LAUNCHING:
        return view.cost_usd
    since = (view.ended_at or now) - view.launched_at if view.launched_at else timedelta()
    return max(view.cost_usd, round(group.limits.usd_per_hour * since.total_seconds() / 3600, 6))


def end_at(group: ToolGroup, view: SessionView, *, is_used: bool) -> tuple[datetime, SessionEnd] | None:
    """When the session ends by itself, and why."""
    limits = group.limits
    ends: list[tuple[datetime, SessionEnd]] = []
    if limits.idle_timeout_s is not None and view.used_at is not None and not is_used:
        ends.append((view.used_at + timedelta(seconds=limits.idle_timeout_s), SessionEnd.IDLE))
    if view.lease_ends_at is not None and not is_used:
        ends.append((view.lease_ends_at, SessionEnd.LEASE_EXPIRED))
    if limits.total_timeout_s is not None:
        ends.append((view.opened_at + timedelta(seconds=limits.total_timeout_s), SessionEnd.TOO_LONG))
    if limits.max_usd is not None and limits.usd_per_hour > 0 and view.launched_at is not None:
        ends.append((view.launched_at + timedelta(hours=min(limits.max_usd / limits.usd_per_hour, _NEVER_H)), SessionEnd.BUDGET))
    return min(ends, key=lambda end: end[0], default=None)


def reckoned(group: ToolGroup, view: SessionView, now: datetime) -> SessionView:
    """The view with the cost until now, and with the time at which the session ends if it is not used until then."""
    end = end_at(group, view, is_used=False) if view.state is SessionState.READY else None
    return view.model_copy(update={"cost_usd": cost_usd(group, view, now), "ends_at": end[0] if end is not None else None})


def accounted(results: Iterable[ToolResult]) -> tuple[ToolResult, ...]:
    """The results for the account of a session. Those that do not fit are replaced by a reference to their task."""
    told: list[ToolResult] = []
    left = _ACCOUNT_BYTES
    for result in results:
        size = len(result.model_dump_json().encode("utf-8", "surrogatepass"))
        told.append(result if size <= left else _left_out(result))
        left -= size if size <= left else 0
    return tuple(told)


def _left_out(result: ToolResult) -> ToolResult:
    message = f"The results of the session are too large together. GET /tasks/{result.call_id} has this one."
    wrong = ToolError(type=ErrorType.EXECUTION_ERROR, message=message, details={"reason": TOO_LARGE, "outcome": "executed"})
    return failed(result.call_id, result.tool_id, wrong, result.executed_at, execution_time=result.execution_time, metadata=result.metadata)


def over_by(group: ToolGroup, result: ToolResult) -> SessionEnd | None:
    """Why this run ends its session; None if it does not."""
    return SessionEnd.FAILED_STEP if result.error is not None and group.stop_after_failure and was_made(result) else None


def launch_ids(session: OpenSession) -> tuple[str, ...]:
    """The ids of its launches, in order. Each is tried only if the one before certainly was not made. An adopted call is made once."""
    return launch_ids_of(session.session_id, session.adopts.call_id if session.adopts is not None else None)


def launch_ids_of(session_id: str, adopts: str | None) -> tuple[str, ...]:
    """As `launch_ids`; `adopts` is the id of the adopted call, if any."""
    if adopts is not None:
        return (adopts,)
    return tuple(call_id_in(session_id, f"launch {number}") for number in range(1, _LAUNCHES + 1))


def is_alert(attempts: int) -> bool:
    """Whether to alert an operator after this many unconfirmed stops: at the third, and each time the number has doubled."""
    thirds, rest = divmod(attempts, 3)
    return rest == 0 and thirds > 0 and thirds & (thirds - 1) == 0


def host_of(result: ToolResult) -> str | None:
    """The host on which the call was made, even if its answer was lost."""
    host = result.metadata.get("host")
    return host if isinstance(host, str) and host else None


def _details(result: ToolResult) -> Mapping[str, JsonValue]:
    details = result.error.details if result.error else None
    return details if isinstance(details, dict) else {}


def _field(result: JsonValue, path: str) -> JsonValue:
    """As `field_of`, or None if there is no such field."""
    with suppress(NoSuchFieldError):
        return field_of(result, path)
    return None
