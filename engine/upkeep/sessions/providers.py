"""Compares what providers run with the sessions, and stops launches that no session owns any more."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol

import structlog
from pydantic import JsonValue

from engine.groups.alerts import alert
from engine.store.calls import CallTable
from engine.store.clock import now
from engine.store.events import EventTable
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from engine.upkeep.rounds import repeated
from engine.upkeep.sessions.sweep import SessionWorkflows
from toolagent.contracts.calls import Caller, ToolCall, ToolResult
from toolagent.contracts.groups import GroupRole, ToolGroup, VerifyProbe
from toolagent.contracts.records import CallRecord
from toolagent.contracts.sessions import SESSION_ID_PATTERN, OpenSession, SessionEnd, SessionState, SessionView
from toolagent.core.calls.masking import masked_params, masked_text
from toolagent.core.catalog.lifecycles import lifecycle_fault
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.groups.roles import session_for
from toolagent_service.groups.sessions import (
    call_id_in,
    identity_of,
    is_stoppable,
    items_of,
    launch_ids,
    launched_by,
    launcher_of,
    listed_by,
    looked_up,
    may_have_launched,
    seen_in,
    the_step,
)

_EVERY_S = 300.0
_LISTED_AFTER = timedelta(seconds=60)
"""A provider may list a stopped launch for so long."""

_LATELY = timedelta(days=1)
"""The probe of a group without a session for so long is not called: its tool may be asleep, or not set up."""

_LATELY_KEPT_UP = timedelta(seconds=2 * _EVERY_S)
"""The same, if the probe keeps a process of ours up and launches cost nothing: they end with that process."""

_LOST_FOR = timedelta(hours=1)
"""So long after a session a provider that cannot list is asked about its lost launches."""

_LOOK_S = 60.0

_MOST = 1_000
"""Ended sessions of a group that are read, besides all living ones."""

_STOPS = 3
"""Sessions that try to stop the same launch, one after the other, before an operator has to."""

_SERVICE = Caller(caller_id="service", caller_type="service")

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Listing(Protocol):
    async def __call__(self, call: ToolCall) -> ToolResult:
        """Makes an ordinary call. Raises ConnectionError if Temporal does not answer."""
        ...


class ProviderSweep:
    """Looks at groups that have a probe and a recent session. Several hosts may do it at once.

    A probe that answers for a single launch is called for each lost launch. A launch of no session of ours is reported, and never stopped.
    """

    def __init__(
        self,
        groups: GroupTable,
        sessions: SessionTable,
        calls: CallTable,
        events: EventTable,
        workflows: SessionWorkflows,
        listing: Listing,
        is_kept_up: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._groups, self._sessions, self._calls, self._events = groups, sessions, calls, events
        self._workflows, self._listing, self._is_kept_up = workflows, listing, is_kept_up
        self._launchers: dict[str, Mapping[str, frozenset[str]]] = {}
        """By group: listed launches without a session, and the sessions that may own them."""

    async def run(self) -> None:
        """One round. Raises StoreUnavailableError if the groups cannot be read."""
        for group in await self._groups.with_lifecycle():
            try:
                await self._see(group)
            except Exception:  # noqa: BLE001 - one bad provider must not block others
                _log.exception("provider_not_compared", group_id=group.group_id, then="it is tried again")

    async def _see(self, group: ToolGroup) -> None:
        probe = group.verify
        if probe is None or lifecycle_fault(group) is not None:
            return
        views = await self._views(group)
        if probe.asks is not None:
            known = launched_by(probe, views)[:_MOST]
            for view in _lately(views, _LOST_FOR):
                # Most sessions have the answer of their first launch, and need no read.
                if view.launched is None or view.launch_call_id != call_id_in(view.session_id, "launch 1"):
                    await self._find_lost(view, probe, known)
        if probe.asks is None or probe.lists is not None:
            is_free = group.limits.usd_per_hour == 0
            is_short = is_free and await self._is_kept_up(probe.lists or probe.tool_id)
            if _lately(views, _LATELY_KEPT_UP if is_short else _LATELY):
                await self._compare(group, probe)

    async def _views(self, group: ToolGroup) -> Sequence[SessionView]:
        """The living sessions, then the newest of the others.

        Raises ValidationError if one is unreadable, because its launch would seem to have no owner.
        """
        living = await self._sessions.of_group(group.group_id, living=True, most=_MOST, all_of=True)
        newest = await self._sessions.of_group(group.group_id, most=_MOST, all_of=True)
        return tuple({view.session_id: view for view in (*living, *newest)}.values())

    async def _find_lost(self, view: SessionView, probe: VerifyProbe, known: tuple[JsonValue, ...]) -> None:
        whole = await self._sessions.whole(view.session_id)
        for call_id in launch_ids(whole[0]) if whole is not None and view.state is not SessionState.LAUNCHING else ():
            if whole is None or (call_id == view.launch_call_id and view.launched is not None):
                continue
            record = await self._calls.get(call_id)
            if record is not None and record.result is not None and may_have_launched(record.result):
                asked_at, call = now(), looked_up(whole[0], view, probe, call_id, known)
                answer = await self._listing(call.model_copy(update={"timeout_s": _LOOK_S, "caller": _SERVICE}))
                if found := seen_in(probe, answer, call_id):
                    await self._stop(whole, call_id, found, asked_at)

    async def _compare(self, group: ToolGroup, probe: VerifyProbe) -> None:
        asked_at = now()
        tool_id, params = (probe.tool_id, probe.params) if probe.lists is None else (probe.lists, {})
        result = await self._listing(ToolCall(tool_id=tool_id, params=params, caller=_SERVICE))
        items = items_of(probe, result)
        if items is None:
            said = result.error.message if result.error else f"its answer has no list at {probe.items!r}"
            await self._tell(group, f"unlisted:{asked_at:%Y-%m-%dT%H}", f"It is not known what the provider runs: {said}")
            return
        if probe.lists is not None:
            await self._match(group, probe, items, asked_at)
            return
        for item in items:
            await self._look(group, probe, item, asked_at)

    async def _match(self, group: ToolGroup, probe: VerifyProbe, items: Sequence[JsonValue], asked_at: datetime) -> None:
        """Matches a list that names no calls: each item belongs to the session that has it as the result of its launch."""
        groups = [one for one in await self._groups.with_lifecycle() if one.verify is not None and one.verify.lists == probe.lists]
        # Read after the list: the session of each listed launch has a row by then.
        views = [view for one in groups for view in await self._views(one)]
        launching = frozenset(view.session_id for view in views if view.launched is None and not _has_ended(view, asked_at))
        before = self._launchers.get(group.group_id, {})
        unknown: dict[str, frozenset[str]] = {}
        for item in items:
            identity, owners = _hash(identity_of(group, item)), listed_by(probe, item, views)
            if not owners:
                unknown[identity] = before.get(identity, launching) & launching
                if not unknown[identity]:
                    await self._tell_foreign(group, item)
            elif all(_has_ended(view, asked_at) for view in owners):
                await self._stop_left(group, owners, item, asked_at)
        self._launchers[group.group_id] = unknown

    async def _stop_left(self, group: ToolGroup, owners: Iterable[SessionView], item: JsonValue, asked_at: datetime) -> None:
        """Stops a launch whose owners have all ended."""
        first = min(owners, key=lambda view: view.ended_at or asked_at)
        owner = await self._sessions.whole(first.session_id) if first.group_id == group.group_id else None
        if owner is not None and first.launch_call_id is not None:
            await self._stop(owner, first.launch_call_id, item, asked_at)

    async def _look(self, group: ToolGroup, probe: VerifyProbe, item: JsonValue, asked_at: datetime) -> None:
        call_id = launcher_of(probe, item)
        owner = await self._owner(group, call_id) if call_id is not None else None
        if call_id is None or owner is None:
            await self._tell_foreign(group, item)
        elif not _is_owned(owner[1], call_id, asked_at):
            await self._stop(owner, call_id, item, asked_at)

    async def _owner(self, group: ToolGroup, call_id: str) -> tuple[OpenSession, SessionView] | None:
        """The session with this launch."""
        record = await self._calls.get(call_id)
        if record is None or record.tool_id != the_step(group, GroupRole.LAUNCH).tool_id:
            return None
        return await self._sessions.whole(_session_in(record) or session_for(group.group_id, call_id))

    async def _stop(self, owner: tuple[OpenSession, SessionView], call_id: str, item: JsonValue, asked_at: datetime) -> None:
        """Opens a session that begins with the stop, so that the stop is retried until it is confirmed."""
        request, view = owner
        group = request.group
        for number in range(_STOPS):
            session_id = session_for(group.group_id, call_id, number)
            known = await self._sessions.get(session_id)
            if known is None:
                await self._begin(request, view, session_id, call_id, item)
                return
            if _is_owned(known, call_id, asked_at):
                return
        reason = f"The provider still runs what was stopped {_STOPS} times."
        await self._tell(group, f"stays:{call_id}", reason, _named(group, item))

    async def _begin(self, owner: OpenSession, before: SessionView, session_id: str, call_id: str, item: JsonValue) -> None:
        at, group = now(), owner.group
        view = SessionView(
            session_id=session_id,
            group_id=group.group_id,
            state=SessionState.READY,
            caller=_SERVICE,
            launched=item,
            host=before.host,
            versions=before.versions,
            launch_call_id=call_id,
            end=SessionEnd.UNOWNED,
            opened_at=before.opened_at,
            launched_at=at,
            used_at=at,
        )
        params = owner.params if owner.adopts is None else owner.adopts.call.params
        request = OpenSession(session_id=session_id, group=group, params=params, caller=_SERVICE)
        _log.warning("launched_and_unowned", group_id=group.group_id, call_id=call_id, then="it is stopped")
        # The row first: if this host dies now, the sweep of sessions continues, and ends the session for the same reason.
        await self._sessions.open(request, view, None)
        await self._workflows.go_on(SessionLife(request=request, view=view, end=SessionEnd.UNOWNED))
        reason = f"The provider runs what session {before.session_id} launched and has no more; session {session_id} stops it."
        await self._tell(group, f"unowned:{session_id}", reason, _named(group, item))

    async def _tell_foreign(self, group: ToolGroup, item: JsonValue) -> None:
        what = f"foreign:{_hash(identity_of(group, item))}"
        await self._tell(group, what, "The provider runs what no session launched; it is left alone.", _named(group, item))

    async def _tell(self, group: ToolGroup, what: str, reason: str, item: JsonValue = None) -> None:
        named: dict[str, JsonValue] = {"item": item} if item is not None else {}
        stop = the_step(group, GroupRole.STOP)
        await alert(self._events, f"{group.group_id}:{what}", stop.tool_id, reason, group_id=group.group_id, **named)


def sweeping_providers(sweep: ProviderSweep) -> AbstractAsyncContextManager[None]:
    """Sweeps at intervals until the block ends."""
    return repeated(sweep.run, _EVERY_S, "what providers run")


def _lately(views: Iterable[SessionView], within: timedelta) -> list[SessionView]:
    since = now() - within
    return [view for view in views if view.ended_at is None or view.ended_at > since]


def _has_ended(view: SessionView, asked_at: datetime) -> bool:
    """Whether the session ended so long ago that the provider must know."""
    return view.ended_at is not None and view.ended_at <= asked_at - _LISTED_AFTER


def _is_owned(view: SessionView, call_id: str, asked_at: datetime) -> bool:
    """Whether the session owns the launch, or did until so recently that the provider may still list it."""
    if view.ended_at is not None:
        return not _has_ended(view, asked_at)
    return view.state is SessionState.LAUNCHING or view.launch_call_id == call_id


def _session_in(record: CallRecord) -> str | None:
    """The session id at the end of the workflow id, if the session made the launch itself."""
    last = record.workflow_id.rpartition("/")[2]
    return last if re.fullmatch(SESSION_ID_PATTERN, last) else None


def _named(group: ToolGroup, item: JsonValue) -> JsonValue:
    """The identity by which the item would be stopped. Without one, only a hash and field names: the item may hold keys."""
    identity = identity_of(group, item)
    if isinstance(identity, dict) and the_step(group, GroupRole.STOP).bindings and is_stoppable(group, item):
        return masked_params({}, identity)
    fields = masked_params({}, dict.fromkeys(item)) if isinstance(item, dict) else {}
    return {"hash": _hash(item), "fields": [masked_text(name) for name in fields]}


def _hash(identity: JsonValue) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:40]
