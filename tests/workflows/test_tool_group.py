"""Sessions on a real Temporal server: whatever happens, a launched server is stopped, once."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.client.agents import Renting
from tests.workflows.session_paths import BUSY, GONE, LOST, REFUSED, STRANGE, Provider, group_of, life_of, opened
from tests.workflows.stage import AnyHandle, Stage
from toolagent.client import names
from toolagent.client.failures import SessionRefusedError
from toolagent.client.sessions import Sessions
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.sessions import GroupUse, SessionAccount, SessionEnd, SessionRun, SessionState, SessionView
from toolagent_service import step_names

BOUND_S = 60


@dataclass
class Opened:
    provider: Provider
    handle: AnyHandle

    async def run(self, **run: object) -> ToolResult:
        return await self.handle.execute_update(names.RUN_IN_SESSION, SessionRun.model_validate(run), result_type=ToolResult)

    async def ended(self) -> SessionAccount:
        async with asyncio.timeout(BOUND_S):
            return SessionAccount.model_validate(await self.handle.result())


@asynccontextmanager
async def session(temporal: Client, provider: Provider, group: ToolGroup, **more: object) -> AsyncGenerator[Opened]:
    stage = Stage(temporal, f"queue-{uuid.uuid4().hex}")
    async with stage.workers(provider.steps):
        yield Opened(provider, await opened(stage, provider, life_of(group, f"session-{uuid.uuid4().hex}", **more)))


async def ended(temporal: Client, provider: Provider, group: ToolGroup, **more: object) -> SessionView:
    """The end of a session that ends by itself."""
    async with session(temporal, provider, group, **more) as live:
        return (await live.ended()).session


def of_stop(provider: Provider) -> tuple[int, int]:
    return len(provider.launched), len(provider.stopped)


async def test_a_session_binds_what_was_launched_and_stops_once_when_it_is_asked_to(temporal: Client) -> None:
    provider = Provider(stops=[BUSY])  # so that both who ask for the stop come before it
    async with session(temporal, provider, group_of()) as live:
        results = await asyncio.gather(live.run(key="one"), live.run(key="one"), live.run(params={"server_id": "of-others"}))
        views = await asyncio.gather(*(live.handle.execute_update(names.STOP_SESSION, result_type=SessionView) for _ in range(2)))
        account = await live.ended()
    assert [result.status for result in results] == ["success"] * 3
    assert set(provider.worked) == {"server-0"}
    assert provider.hosts == {"launch": None, "work": "host-1", "list": "host-1", "stop": "host-1"}
    assert provider.versions == dict.fromkeys(("launch", "work", "list", "stop"), "1.0.0")
    assert views[0] == views[1] == account.session
    assert (account.session.state, account.session.end) == (SessionState.STOPPED, SessionEnd.ASKED)
    assert provider.stopped == ["server-0"]
    assert [view.state.value for view in provider.views] == ["launching", "ready", "stopping", "stopping", "stopped"]


@pytest.mark.parametrize(
    ("provider", "group", "end", "counts"),
    [
        (Provider(), group_of(idle_timeout_s=0.5), SessionEnd.IDLE, (1, 1)),
        (Provider(), group_of(total_timeout_s=0.5), SessionEnd.TOO_LONG, (1, 1)),
        (Provider(), group_of(usd_per_hour=3600.0, max_usd=0.5), SessionEnd.BUDGET, (1, 1)),
        (Provider(launches=[REFUSED]), group_of(), SessionEnd.LAUNCH_FAILED, (0, 0)),
        (Provider(has_room=False), group_of(max_sessions=1), SessionEnd.REFUSED, (0, 0)),
        (Provider(launches=[LOST]), group_of(idle_timeout_s=0.5), SessionEnd.IDLE, (1, 1)),
        (Provider(stops=[BUSY, LOST]), group_of(idle_timeout_s=0.5), SessionEnd.IDLE, (1, 1)),
        (Provider(stops=[STRANGE]), group_of(idle_timeout_s=0.5), SessionEnd.IDLE, (1, 1)),
    ],
    ids=["idle", "too-long", "budget", "refused", "no-room", "lost-and-found", "stopped-at-the-third", "told-nonsense"],
)
async def test_what_was_launched_is_stopped(
    temporal: Client, provider: Provider, group: ToolGroup, end: SessionEnd, counts: tuple[int, int]
) -> None:
    view = await ended(temporal, provider, group)
    assert (view.end, of_stop(provider), provider.running) == (end, counts, {})
    assert (view.state is SessionState.FAILED) == (counts == (0, 0))


async def test_each_timer_of_a_session_says_what_it_is_for(temporal: Client) -> None:
    async with session(temporal, Provider(stops=[BUSY]), group_of(idle_timeout_s=0.5)) as live:
        await live.ended()
        history = await live.handle.fetch_history()
    started = [event for event in history.events if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED]
    assert [json.loads(event.user_metadata.summary.data) for event in started] == ["limit: idle", "stop again"]


async def test_what_is_gone_already_counts_as_stopped(temporal: Client) -> None:
    provider = Provider(stops=[GONE])
    view = await ended(temporal, provider, group_of(is_seen=False, idle_timeout_s=0.5))
    assert (view.state, view.stop_attempts, provider.stops) == (SessionState.STOPPED, 0, [])


async def test_a_lost_launch_that_nobody_can_look_for_is_told(temporal: Client) -> None:
    provider = Provider(launches=[LOST])
    view = await ended(temporal, provider, group_of(is_seen=False))
    assert (view.state, view.end) == (SessionState.FAILED, SessionEnd.LAUNCH_FAILED)
    assert "not known" in provider.alerts[0]


async def test_a_failed_run_ends_the_session_and_a_refused_one_does_not(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of()) as live:
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await live.run(tool_id="stop")
        assert (await live.run()).status == "success"
        assert (await live.run(params={"fails": True})).status == "error"
        account = await live.ended()
        with pytest.raises(Exception, match="already completed"):
            await live.run()
    assert isinstance(refused.value.cause, ApplicationError)
    assert "'stop' does not run in it" in refused.value.cause.message
    assert (account.session.end, provider.stopped) == (SessionEnd.FAILED_STEP, ["server-0"])


async def test_a_run_under_way_is_cancelled_before_the_stop(temporal: Client) -> None:
    provider = Provider(stops=[BUSY])  # so that who is late comes before it
    async with session(temporal, provider, group_of()) as live:
        running = asyncio.create_task(live.run(params={"lasts": True}))
        await provider.works.wait()
        await live.handle.start_update(names.STOP_SESSION, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        with pytest.raises(WorkflowUpdateFailedError):
            await live.run()
        assert (await running).error_type is ErrorType.CANCELLED
        await live.ended()
        history = await live.handle.fetch_history()
    assert (provider.worked, provider.stopped) == ([], ["server-0"])
    accepted = sum(event.HasField("workflow_execution_update_accepted_event_attributes") for event in history.events)
    assert accepted == 2, "the run and the stop; a refused run leaves nothing in the history"


async def test_a_cancelled_workflow_stops_what_it_launched(temporal: Client) -> None:
    provider = Provider(stops=[BUSY])
    async with session(temporal, provider, group_of()) as live:
        await live.run()
        await live.handle.cancel()
        await asyncio.sleep(0.2)
        await live.handle.cancel()
        account = await live.ended()
    assert (account.session.end, provider.stopped, account.session.stop_attempts) == (SessionEnd.CANCELLED, ["server-0"], 1)


async def test_a_script_is_run_in_order_and_its_results_come_back(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(), runs=[SessionRun(), SessionRun(params={"fails": True}), SessionRun()]) as live:
        account = await live.ended()
    assert [result.status for result in account.results] == ["success", "error"]
    assert (account.session.end, provider.stopped) == (SessionEnd.FAILED_STEP, ["server-0"])


@pytest.mark.parametrize(
    ("group", "end"),
    [(group_of(total_timeout_s=0.5), SessionEnd.TOO_LONG), (group_of(usd_per_hour=3600.0, max_usd=0.5), SessionEnd.BUDGET)],
)
async def test_a_run_of_a_script_is_cancelled_at_the_limits_of_its_session(temporal: Client, group: ToolGroup, end: SessionEnd) -> None:
    provider = Provider()
    async with session(temporal, provider, group, runs=[SessionRun(params={"lasts": True}), SessionRun()]) as live:
        account = await live.ended()
    assert [result.error_type for result in account.results] == [ErrorType.CANCELLED]
    assert (account.session.end, provider.stopped, provider.worked) == (end, ["server-0"], [])


async def test_results_that_are_too_large_together_are_told_as_such(temporal: Client) -> None:
    group = group_of()
    large = group.model_copy(update={"steps": tuple(step.model_copy(update={"params": {"gives": "a" * 262_000}}) for step in group.steps)})
    async with session(temporal, Provider(), large, runs=[SessionRun()] * 8) as live:
        account = await live.ended()
    assert [result.error_type for result in account.results] == [None] * 6 + [ErrorType.EXECUTION_ERROR] * 2
    assert account.results[-1].error is not None
    assert account.results[-1].call_id in account.results[-1].error.message


async def test_a_script_that_waits_for_a_run_of_others_ends_with_its_session(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(), runs=[SessionRun(params={"holds": True}), SessionRun()]) as live:
        await provider.works.wait()
        provider.works.clear()
        others = await live.handle.start_update(
            names.RUN_IN_SESSION, SessionRun(params={"lasts": True}), wait_for_stage=WorkflowUpdateStage.ACCEPTED, result_type=ToolResult
        )
        provider.may_work.set()
        await provider.works.wait()
        await live.handle.execute_update(names.STOP_SESSION)
        account = await live.ended()
        assert (await others.result()).error_type is ErrorType.CANCELLED
    assert [result.status for result in account.results] == ["success"]
    assert (account.session.end, provider.stopped) == (SessionEnd.ASKED, ["server-0"])


async def test_an_operator_is_told_of_a_provider_that_does_not_say_what_it_launched(temporal: Client) -> None:
    silences: list[ToolError] = [REFUSED] * 3
    provider = Provider(launches=[LOST], lists=silences)
    view = await ended(temporal, provider, group_of(idle_timeout_s=0.5))
    assert (view.end, of_stop(provider)) == (SessionEnd.IDLE, (1, 1))
    assert len(provider.alerts) == 1
    assert "does not say" in provider.alerts[0]


async def test_an_operator_is_told_of_stops_that_fail(temporal: Client) -> None:
    errors: list[ToolError] = [BUSY] * 3
    provider = Provider(stops=errors)
    view = await ended(temporal, provider, group_of(idle_timeout_s=0.5))
    assert (view.state, view.stop_attempts, len(provider.alerts)) == (SessionState.STOPPED, 3, 1)


def misbound(tool_id: str) -> ToolGroup:
    steps = [
        {**step.model_dump(), **({"bindings": {"server_id": "$.name"}} if step.tool_id == tool_id else {})} for step in group_of().steps
    ]
    return ToolGroup.model_validate({**group_of().model_dump(), "steps": steps})


async def test_a_binding_that_names_no_field_is_told_and_sends_nothing(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, misbound("work")) as live:
        result = await live.run()
        await live.handle.execute_update(names.STOP_SESSION)
        account = await live.ended()
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.VALIDATION_ERROR, {"sent": False})
    assert "no field '$.name'" in result.error.message
    assert (account.session.state, provider.worked, provider.stopped) == (SessionState.STOPPED, [], ["server-0"])


@pytest.mark.parametrize("launches", [[], [LOST]], ids=["answered", "lost"])
async def test_a_session_is_not_ready_on_what_it_cannot_stop(
    temporal: Client, monkeypatch: pytest.MonkeyPatch, launches: list[ToolError]
) -> None:
    monkeypatch.setattr("toolagent_service.groups.sessions.LOOKS", 2)
    provider = Provider(launches=launches)
    view = await ended(temporal, provider, misbound("stop"))
    assert (view.state, view.end, len(provider.launched)) == (SessionState.FAILED, SessionEnd.LAUNCH_FAILED, 1)
    assert SessionState.READY not in {view.state for view in provider.views}
    assert "It cannot be stopped" in provider.alerts[0]
    assert "$.name" in provider.alerts[0]


async def asks(live: Opened) -> bool:
    """Whether the update of a caller has reached it."""
    history = await live.handle.fetch_history()
    return any(event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED for event in history.events)


async def test_a_run_waits_for_the_launch_and_is_refused_where_that_fails(temporal: Client) -> None:
    for error in (None, REFUSED):
        provider = Provider(launches=[error] if error else [])
        # By an activity of its own: during a local one no update would reach the session.
        async with session(temporal, provider, group_of(idle_timeout_s=2.0), params={"holds": True}) as live:
            await provider.works.wait()
            running = asyncio.create_task(Sessions(temporal).run("servers", live.handle.id.rpartition("/")[2], SessionRun()))
            while not await asks(live):  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.05)
            provider.may_work.set()
            (told,) = await asyncio.gather(running, return_exceptions=True)
            await live.ended()
        if error is None:
            assert isinstance(told, ToolResult)
            assert told.status == "success"
        else:
            assert isinstance(told, SessionRefusedError)
            assert (told.type, "is failed" in str(told)) == (names.SESSION_OVER, True)


@pytest.mark.parametrize("error", [REFUSED, BUSY, LOST], ids=["401", "500", "no-answer"])
async def test_a_session_whose_server_vanishes_in_a_run_is_stopped_although_its_provider_fails(temporal: Client, error: ToolError) -> None:
    provider = Provider(stops=[error])
    async with session(temporal, provider, group_of(is_seen=True)) as live:
        await live.handle.execute_update(names.SESSION)
        provider.running.clear()
        result = await live.run(params={"fails": True})
        account = await live.ended()
    assert result.error == BUSY
    assert (account.session.state, account.session.end, provider.stopped) == (SessionState.STOPPED, SessionEnd.FAILED_STEP, [])


_STOP: JsonValue = {"tool_id": "stop", "params": {"server_id": "server-0"}}


@pytest.mark.parametrize(
    ("signal", "said"),
    [
        (step_names.USE_SESSION, {"call_id": "call-12345678", "until": "2030-01-01T00:00:00"}),
        (step_names.STOP_BY, {"call": _STOP, "call_id": "call-12345678", "workflow_id": "", "run_id": ""}),
        (step_names.STOP_BY, {"call": _STOP, "call_id": "call-12345678", "workflow_id": "w" * 3_000, "run_id": ""}),
    ],
    ids=["no-zone", "nobody", "no-name"],
)
async def test_a_signal_that_is_nonsense_leaves_the_session_to_its_stop(temporal: Client, signal: str, said: JsonValue) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of()) as live:
        await live.handle.execute_update(names.SESSION)
        await live.handle.signal(signal, said)
        async with asyncio.timeout(BOUND_S):
            await live.handle.execute_update(names.SESSION)
            await live.handle.execute_update(names.STOP_SESSION)
        await live.ended()
    assert (provider.stopped, provider.running) == (["server-0"], {})


@pytest.mark.parametrize("call", [{"tool_id": "list"}, {"tool_id": "stop", "params": {"server_id": "of-others"}}], ids=["tool", "server"])
async def test_what_is_no_stop_of_the_session_does_not_count_as_one(temporal: Client, call: JsonValue) -> None:
    provider = Provider(stops=[BUSY])
    async with session(temporal, provider, group_of()) as live:
        await live.handle.execute_update(names.SESSION)
        said = {"call": call, "call_id": "call-12345678", "workflow_id": "call-12345678", "run_id": ""}
        await live.handle.signal(step_names.STOP_BY, said)
        account = await live.ended()
    assert (account.session.state, account.session.end) == (SessionState.STOPPED, SessionEnd.ASKED)
    assert (provider.stopped, provider.running) == (["server-0"], {})
    assert provider.answers["call-12345678"].status == "success"


async def test_a_run_that_asks_for_more_than_a_call_may_take_is_refused(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(idle_timeout_s=2.0)) as live:
        await live.handle.execute_update(names.SESSION)
        with pytest.raises(WorkflowUpdateFailedError):
            await live.handle.execute_update(names.RUN_IN_SESSION, {"timeout_s": 86_401})
        await live.ended()
    assert (provider.stopped, provider.running) == (["server-0"], {})


async def test_runs_of_a_script_are_calls_of_their_own_whatever_their_keys(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(), runs=[SessionRun(key="1"), SessionRun()]) as live:
        account = await live.ended()
    assert len({result.call_id for result in account.results}) == len(provider.worked) == 2


@asynccontextmanager
async def rented(temporal: Client, provider: Provider, use: GroupUse) -> AsyncGenerator[AnyHandle]:
    """By another project's workflow."""
    stage = Stage(temporal, f"queue-{uuid.uuid4().hex}")
    theirs = f"theirs-{stage.queue}"
    async with stage.workers(provider.steps), Worker(temporal, task_queue=theirs, workflows=[Renting]):
        yield await Stage(temporal, theirs).start("Renting", use, stage.queue, workflow_id=theirs)


async def test_a_foreign_workflow_uses_a_group_and_gets_its_results(temporal: Client) -> None:
    provider = Provider()
    async with rented(temporal, provider, GroupUse(group_id="servers", runs=(SessionRun(), SessionRun()))) as renting:
        account = SessionAccount.model_validate(await renting.result())
    assert [result.status for result in account.results] == ["success"] * 2
    assert (account.session.end, provider.stopped) == (SessionEnd.DONE, ["server-0"])


async def test_when_a_foreign_workflow_is_terminated_its_session_is_stopped(temporal: Client) -> None:
    provider = Provider()
    async with rented(temporal, provider, GroupUse(group_id="servers", runs=(SessionRun(params={"lasts": True}),))) as renting:
        await provider.works.wait()
        await renting.terminate()
        async with asyncio.timeout(BOUND_S):
            while not provider.stopped:  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.05)
    assert (provider.launched, provider.stopped, provider.running) == (["server-0"], ["server-0"], {})
