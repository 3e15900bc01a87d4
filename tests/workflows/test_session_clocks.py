"""Sessions whose clock was set: their times are wrong by days, and the stop comes all the same, once."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client

from tests.workflows.session_paths import Provider, group_of, life_of, opened
from tests.workflows.stage import Stage
from toolagent.client import names
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.sessions import SessionAccount, SessionEnd, SessionRun, SessionState, SessionView
from toolagent_service.contracts.sessions import SessionLife

_BOUND_S = 60
_JUMP = timedelta(days=2)


def _life(at: datetime, group: ToolGroup) -> SessionLife:
    """The life of a session that was ready when its clock said `at`."""
    life = life_of(group, f"session-{uuid.uuid4().hex}")
    view = SessionView(
        session_id=life.request.session_id,
        group_id="servers",
        state=SessionState.READY,
        launched={"server_id": "server-0"},
        host="host-1",
        opened_at=at,
        launched_at=at,
        used_at=at,
    )
    return life.model_copy(update={"view": view})


@pytest.mark.parametrize(
    ("group", "end"),
    [
        (group_of(idle_timeout_s=3600.0, total_timeout_s=None), SessionEnd.IDLE),
        (group_of(idle_timeout_s=None, total_timeout_s=3600.0), SessionEnd.TOO_LONG),
    ],
)
async def test_a_clock_that_jumps_ahead_ends_a_session_and_its_stop_comes_once(temporal: Client, group: ToolGroup, end: SessionEnd) -> None:
    provider, stage = Provider(), Stage(temporal, f"queue-{uuid.uuid4().hex}")
    async with stage.workers(provider.steps), asyncio.timeout(_BOUND_S):
        handle = await opened(stage, provider, _life(datetime.now(UTC) - _JUMP, group))
        account = SessionAccount.model_validate(await handle.result())
    assert (account.session.state, account.session.end, provider.stopped) == (SessionState.STOPPED, end, ["server-0"])


async def test_a_clock_that_jumps_back_leaves_a_session_usable_and_its_next_use_sets_its_limit_right(temporal: Client) -> None:
    provider, stage = Provider(), Stage(temporal, f"queue-{uuid.uuid4().hex}")
    async with stage.workers(provider.steps), asyncio.timeout(_BOUND_S):
        handle = await opened(stage, provider, _life(datetime.now(UTC) + _JUMP, group_of(idle_timeout_s=0.5)))
        ran = await handle.execute_update(names.RUN_IN_SESSION, SessionRun(key="one"), result_type=ToolResult)
        account = SessionAccount.model_validate(await handle.result())
    assert (ran.status, provider.worked) == ("success", ["server-0"])
    assert (account.session.state, account.session.end, provider.stopped) == (SessionState.STOPPED, SessionEnd.IDLE, ["server-0"])


async def test_runs_set_no_timer_anew_and_a_session_is_idle_only_so_long_after_the_last(temporal: Client) -> None:
    provider, stage = Provider(), Stage(temporal, f"queue-{uuid.uuid4().hex}")
    async with stage.workers(provider.steps), asyncio.timeout(_BOUND_S):
        handle = await opened(stage, provider, life_of(group_of(idle_timeout_s=4.0), f"session-{uuid.uuid4().hex}"))
        for key in ("one", "two", "three", "four"):
            await handle.execute_update(names.RUN_IN_SESSION, SessionRun(key=key))
            await asyncio.sleep(0.1)  # its timer is of a session that nobody has used
        view = SessionAccount.model_validate(await handle.result()).session
        history = await handle.fetch_history()
    timers = [event for event in history.events if event.HasField("timer_started_event_attributes")]
    assert (view.end, view.runs) == (SessionEnd.IDLE, 4)
    # One of the launch, where that takes long, one of the beginning, and one of what was left after the last run.
    assert len(timers) <= 3
    assert view.used_at is not None
    assert view.ended_at is not None
    assert view.ended_at - view.used_at >= timedelta(seconds=4)
