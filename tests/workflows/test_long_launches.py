"""Long launches: the limits of their session end them, and what they launched is looked for and stopped."""

import asyncio
import uuid

import pytest
from pydantic import JsonValue
from temporalio import activity
from temporalio.client import Client, WorkflowUpdateStage

from tests.workflows.session_paths import REFUSED, Provider, group_of, life_of
from tests.workflows.stage import Stage
from tests.workflows.test_tool_group import BOUND_S, of_stop, rented, session
from toolagent.client import names
from toolagent.client.sessions import Sessions
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.sessions import GroupUse, SessionEnd, SessionState, SessionView
from toolagent_service import step_names
from toolagent_service.contracts.steps import CallRequest, Finished
from workflows.invoke import CANCELLED_BEFORE

_LASTS: dict[str, JsonValue] = {"lasts": True}


@pytest.mark.parametrize(
    ("group", "lease_s", "end"),
    [
        (group_of(total_timeout_s=0.5), None, SessionEnd.TOO_LONG),
        (group_of(usd_per_hour=3600.0, max_usd=0.5), None, SessionEnd.BUDGET),
        (group_of(), 0.5, SessionEnd.LEASE_EXPIRED),
    ],
    ids=["too-long", "budget", "lease"],
)
async def test_a_launch_that_is_never_ready_ends_at_the_limits_of_its_session_and_what_it_launched_is_stopped(
    temporal: Client, group: ToolGroup, lease_s: float | None, end: SessionEnd
) -> None:
    provider = Provider()
    async with session(temporal, provider, group, params=_LASTS, lease_s=lease_s) as live:
        told = await live.handle.execute_update(names.SESSION, result_type=SessionView)
        view = (await live.ended()).session
    assert (told.state, told.end) == (SessionState.STOPPING, end)
    assert (view.state, view.end, of_stop(provider), provider.running) == (SessionState.STOPPED, end, (1, 1), {})


async def test_who_stops_a_session_that_still_launches_sees_that_it_was_heard(temporal: Client) -> None:
    provider = Provider(lists=[REFUSED] * 1_000)
    async with session(temporal, provider, group_of(), params=_LASTS) as live, asyncio.timeout(BOUND_S):
        await provider.works.wait()
        await live.handle.start_update(names.STOP_SESSION, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        # The launch was cancelled, and is looked for.
        while len(provider.lists) == 1_000:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.05)
        view = await live.handle.query(names.SESSION, result_type=SessionView)
        provider.lists.clear()  # only now it answers
        await live.ended()
    assert (view.state, view.end) == (SessionState.LAUNCHING, SessionEnd.ASKED)


class Busy(Provider):
    """Its host has no slot for the launch, so a cancelled launch was never sent."""

    @activity.defn(name=step_names.CALL)
    async def call_tool(self, request: CallRequest) -> Finished:  # noqa: ARG002 - as its base has it
        self.works.set()
        try:
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return Finished(error=CANCELLED_BEFORE)


async def test_a_session_that_is_ended_before_its_launch_was_sent_says_why_it_ended(temporal: Client) -> None:
    provider = Busy()
    async with session(temporal, provider, group_of(), params=_LASTS) as live:
        await provider.works.wait()
        await live.handle.execute_update(names.STOP_SESSION)
        view = (await live.ended()).session
    assert (view.state, view.end, view.error, of_stop(provider)) == (SessionState.FAILED, SessionEnd.ASKED, CANCELLED_BEFORE, (0, 0))


async def test_what_a_session_costs_counts_from_when_its_launch_was_asked_for(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(usd_per_hour=3600.0), params=_LASTS) as live:
        await provider.works.wait()
        await asyncio.sleep(1.0)
        provider.may_work.set()
        view = await live.handle.execute_update(names.SESSION, result_type=SessionView)
        await live.handle.execute_update(names.STOP_SESSION)
    assert view.state is SessionState.READY
    assert view.cost_usd >= 1.0


async def test_a_foreign_workflow_that_is_terminated_during_the_launch_leaves_nothing(temporal: Client) -> None:
    provider = Provider()
    async with rented(temporal, provider, GroupUse(group_id="servers", params=_LASTS)) as renting:
        await provider.works.wait()
        await renting.terminate()
        async with asyncio.timeout(BOUND_S):
            while not provider.stopped:  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.05)
    assert (of_stop(provider), provider.running) == ((1, 1), {})


@pytest.mark.parametrize(("is_gone", "state"), [(False, SessionState.READY), (True, SessionState.STOPPING)])
async def test_a_lease_is_renewed_while_somebody_waits_for_the_launch(
    temporal: Client, monkeypatch: pytest.MonkeyPatch, is_gone: bool, state: SessionState
) -> None:
    async def gone() -> bool:
        return is_gone

    provider, stage, session_id = Provider(), Stage(temporal, f"queue-{uuid.uuid4().hex}"), f"session-{uuid.uuid4().hex}"
    monkeypatch.setattr(names, "TASK_QUEUE", stage.queue)
    sessions, request = Sessions(temporal), life_of(group_of(), session_id, params=_LASTS, lease_s=2.5).request
    async with stage.workers(provider.steps), asyncio.timeout(BOUND_S):
        opening = asyncio.create_task(sessions.open(request, is_gone=gone))
        await provider.works.wait()
        await asyncio.wait([opening], timeout=4.0)
        provider.may_work.set()
        view = await opening
        await temporal.get_workflow_handle(names.session_workflow("servers", session_id)).result()
    assert (view.state, of_stop(provider)) == (state, (1, 1))


async def test_a_session_whose_workflow_was_terminated_is_stopped_by_who_asks_for_its_stop(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, stage, session_id = Provider(), Stage(temporal, f"queue-{uuid.uuid4().hex}"), f"session-{uuid.uuid4().hex}"
    monkeypatch.setattr(names, "TASK_QUEUE", stage.queue)
    sessions, life = Sessions(temporal), life_of(group_of(), session_id)
    async with stage.workers(provider.steps), asyncio.timeout(BOUND_S):
        ready = await sessions.open(life.request)
        await temporal.get_workflow_handle(names.session_workflow("servers", session_id)).terminate()
        left = life.model_copy(update={"view": ready, "end": SessionEnd.ASKED}).model_dump(mode="json", exclude_defaults=True)
        view = await sessions.stop_left("servers", session_id, left)
    assert (view.state, view.end, of_stop(provider)) == (SessionState.STOPPED, SessionEnd.ASKED, (1, 1))
