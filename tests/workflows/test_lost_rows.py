"""Sessions that go on while an older database is restored, which does not know them."""

import asyncio
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.client import Client

from tests.workflows.session_paths import Provider, group_of
from tests.workflows.test_tool_group import BOUND_S, session
from toolagent.client import names
from toolagent.contracts.sessions import SessionEnd, SessionState, SessionView
from toolagent_service import step_names
from toolagent_service.contracts.sessions import OpenStep, SessionStep


@dataclass
class Restored(Provider):
    """Has the rows of its database. `written` is what was opened."""

    rows: dict[str, SessionState] = field(default_factory=dict[str, SessionState])
    written: list[SessionView] = field(default_factory=list[SessionView])

    @activity.defn(name=step_names.OPEN_SESSION)
    async def open_session(self, step: OpenStep) -> bool | SessionView:
        self.written.append(step.view)
        may_begin = await super().open_session(step)
        if may_begin is not False:
            self.rows.setdefault(step.view.session_id, step.view.state)
        return may_begin

    @activity.defn(name=step_names.NOTE_SESSION)
    async def note_session(self, step: SessionStep) -> bool:
        await super().note_session(step)
        if step.view.session_id not in self.rows:
            return False
        self.rows[step.view.session_id] = step.view.state
        return True


async def test_a_session_whose_row_is_gone_writes_it_with_its_next_change(temporal: Client) -> None:
    provider = Restored()
    async with session(temporal, provider, group_of(max_sessions=1)) as live:
        await live.handle.execute_update(names.SESSION)
        provider.rows.clear()
        await live.handle.execute_update(names.STOP_SESSION)
        view = (await live.ended()).session
    assert [one.state for one in provider.written] == [SessionState.LAUNCHING, SessionState.STOPPING]
    assert (view.end, provider.rows, provider.stopped) == (SessionEnd.ASKED, {view.session_id: SessionState.STOPPED}, ["server-0"])


async def test_a_session_whose_row_is_gone_writes_it_when_it_is_told(temporal: Client) -> None:
    provider = Restored()
    async with session(temporal, provider, group_of()) as live, asyncio.timeout(BOUND_S):
        ready = await live.handle.execute_update(names.SESSION, result_type=SessionView)
        provider.rows.clear()
        await live.handle.signal(step_names.RECORD_SESSION)
        while not provider.rows:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.05)
        await live.handle.execute_update(names.STOP_SESSION)
        await live.ended()
    assert (provider.written[-1], len(provider.written)) == (ready, 2)
    assert provider.rows == {ready.session_id: SessionState.STOPPED}


async def test_a_session_that_was_refused_has_no_row(temporal: Client) -> None:
    """With the same key it may come again. The signal may have its first task made again."""
    provider = Restored(has_room=False)
    async with session(temporal, provider, group_of(max_sessions=1)) as live:
        await live.handle.signal(step_names.RECORD_SESSION)
        view = (await live.ended()).session
    assert (view.end, {one.state for one in provider.written}, provider.rows) == (SessionEnd.REFUSED, {SessionState.LAUNCHING}, {})


@dataclass
class Overtaken(Restored):
    """The row is lost before the last note. Then an earlier view, which was to be written late, comes first."""

    is_lost: bool = False

    @activity.defn(name=step_names.OPEN_SESSION)
    async def open_session(self, step: OpenStep) -> bool | SessionView:
        if step.view.state is SessionState.STOPPED:
            self.rows[step.view.session_id] = SessionState.READY
        return await super().open_session(step)

    @activity.defn(name=step_names.NOTE_SESSION)
    async def note_session(self, step: SessionStep) -> bool:
        if step.view.state is SessionState.STOPPED and not self.is_lost:
            self.is_lost = True
            self.rows.clear()
        return await super().note_session(step)


async def test_an_earlier_view_that_is_written_first_does_not_stay(temporal: Client) -> None:
    provider = Overtaken()
    async with session(temporal, provider, group_of(idle_timeout_s=0.5)) as live:
        view = (await live.ended()).session
    assert (provider.is_lost, provider.rows) == (True, {view.session_id: SessionState.STOPPED})
