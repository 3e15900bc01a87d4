"""Sessions whose launch or stop has an unknown outcome, and those whose workflow continues as a new run."""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import JsonValue
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from tests.workflows.session_paths import BUSY, LOST, REFUSED, Provider, group_of, life_of, opened
from tests.workflows.stage import Stage, reset
from tests.workflows.steps import plan_of
from tests.workflows.test_tool_group import BOUND_S, Opened, ended, of_stop, session
from toolagent.client import names
from toolagent.client.sessions import Sessions
from toolagent.contracts.calls import ToolError, ToolResult
from toolagent.contracts.groups import ToolGroup, VerifyProbe
from toolagent.contracts.sessions import GroupUse, SessionEnd, SessionRun, SessionState, SessionView
from toolagent_service import step_names
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, CallRequest, Finished, Placement, PlaceRequest
from toolagent_service.groups.sessions import launch_ids
from workflows import options
from workflows.cancelling import ended as answered

_BEFORE = datetime.now(UTC) - timedelta(minutes=30)


async def test_a_launch_that_never_was_is_tried_again_under_another_id(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolagent_service.groups.sessions.LOOKS", 2)
    provider = Provider(launches=[LOST], is_found=False)
    view = await ended(temporal, provider, group_of(idle_timeout_s=0.5))
    assert (view.end, of_stop(provider)) == (SessionEnd.IDLE, (1, 1))


@pytest.mark.parametrize(
    ("group", "end", "said"),
    [
        (group_of(), SessionEnd.LAUNCH_FAILED, "The provider knows of no launch (3 tried)"),
        (group_of(total_timeout_s=2.5), SessionEnd.TOO_LONG, "It was ended while it launched"),  # its launches take a second each
    ],
)
async def test_who_asked_for_a_launch_that_failed_is_told_what_the_provider_said(
    temporal: Client, monkeypatch: pytest.MonkeyPatch, group: ToolGroup, end: SessionEnd, said: str
) -> None:
    monkeypatch.setattr("toolagent_service.groups.sessions.LOOKS", 2)
    view = await ended(temporal, Provider(launches=[BUSY, BUSY, BUSY], is_found=False), group)
    assert view.error is not None
    assert (view.state, view.end) == (SessionState.FAILED, end)
    assert said in view.error.message
    assert BUSY.message in view.error.message


async def test_a_lost_launch_is_looked_for_on_its_host(temporal: Client) -> None:
    provider = Provider(launches=[LOST])
    view = await ended(temporal, provider, group_of(idle_timeout_s=0.5))
    assert (view.host, provider.hosts["list"], provider.hosts["stop"]) == ("host-1", "host-1", "host-1")


@dataclass
class Silent(Provider):
    """While its host makes a call of the tool `under`, it falls silent once. Another host does not know the call."""

    under: str = "list"
    asked: list[str | None] = field(default_factory=list[str | None])

    @property
    def steps(self) -> list[Callable[..., object]]:
        return [*super().steps, self.place]

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        if request.call.tool_id != self.under:
            return await super().admit(request)
        plan = plan_of(request, queue=activity.info().task_queue, host="host-1")
        return Admitted(plan=plan.model_copy(update={"session": request.session}))

    @activity.defn(name=step_names.PLACE)
    async def place(self, _request: PlaceRequest) -> Placement:
        return Placement(queue=activity.info().task_queue, host="host-2")

    @activity.defn(name=step_names.CALL)
    async def call_tool(self, request: CallRequest) -> Finished:
        host = request.plan.placement.host
        self.asked.append(host)
        if len(self.asked) == 1:
            await asyncio.Event().wait()
        if self.under == "launch":
            return await super().call_tool(request)
        known = self.running if host == "host-1" else {}
        servers: list[JsonValue] = [{"server_id": server, "launched_by": call_id} for server, call_id in known.items()]
        return Finished(output={"servers": servers})


@pytest.mark.parametrize("provider", [Silent(under="launch"), Silent(launches=[LOST])], ids=["launch", "look"])
async def test_a_session_waits_for_a_silent_host(temporal: Client, monkeypatch: pytest.MonkeyPatch, provider: Silent) -> None:
    monkeypatch.setattr(options, "_HEARTBEAT", timedelta(seconds=1))
    provider.may_work.set()
    view = await ended(temporal, provider, group_of(idle_timeout_s=0.5))
    assert (view.end, provider.asked, of_stop(provider)) == (SessionEnd.IDLE, ["host-1", "host-1"], (1, 1))


async def test_what_is_found_without_what_the_stop_takes_is_looked_for_again(temporal: Client) -> None:
    provider = Provider(launches=[LOST], unnamed=1)
    view = await ended(temporal, provider, group_of(idle_timeout_s=0.5))
    assert (view.state, of_stop(provider), provider.running) == (SessionState.STOPPED, (1, 1), {})


async def test_a_provider_that_is_asked_by_resemblance_does_not_confirm_a_stop_that_failed(temporal: Client) -> None:
    group = group_of(idle_timeout_s=0.5).model_copy(update={"verify": VerifyProbe(tool_id="launch", asks="launched_by")})
    provider = Provider(stops=[BUSY])
    view = await ended(temporal, provider, group)
    assert (view.stop_attempts, provider.stopped, provider.running) == (1, ["server-0"], {})


def full_after(monkeypatch: pytest.MonkeyPatch, events: int) -> None:
    """A run of a workflow has a history of this many events, or few more."""

    def is_full(info: workflow.Info) -> bool:
        return info.get_current_history_length() > events

    monkeypatch.setattr(workflow.Info, "is_continue_as_new_suggested", is_full)


async def test_who_goes_on_asking_for_the_stop_does_not_keep_a_full_run(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    full_after(monkeypatch, 20)
    provider = Provider(stops=[BUSY, BUSY])
    async with session(temporal, provider, group_of(is_seen=False)) as live:
        await live.handle.execute_update(names.SESSION)
        stops = Sessions(temporal)
        async with asyncio.timeout(25):
            # One that comes when it has just ended is refused.
            asked = (stops.stop("servers", live.handle.id.rpartition("/")[2]) for _ in range(3))
            await asyncio.gather(*asked, return_exceptions=True)
            account = await live.ended()
    assert (account.session.stop_attempts, provider.stopped) == (2, ["server-0"])


async def test_a_session_that_is_reset_while_it_stops_is_stopped(temporal: Client) -> None:
    """Temporal delivers the updates of the old run to the new one before it has launched: the stop comes first."""
    provider = Provider(stops=[BUSY] * 2)
    async with session(temporal, provider, group_of(is_seen=False)) as live, asyncio.timeout(BOUND_S):
        await live.handle.execute_update(names.SESSION)
        await live.handle.start_update(names.STOP_SESSION, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        while not any(view.stop_attempts for view in provider.views):  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.05)
        view = (await Opened(provider, await reset(temporal, live.handle)).ended()).session
    assert (view.state, view.end, of_stop(provider), provider.running) == (SessionState.STOPPED, SessionEnd.ASKED, (1, 1), {})


async def _reopened(temporal: Client, provider: Provider, life: SessionLife, **known: object) -> SessionView:
    """Begun again when it was recorded as `known`."""
    written = {"session_id": life.request.session_id, "group_id": "servers", "state": SessionState.LAUNCHING, "opened_at": _BEFORE, **known}
    provider.views.append(SessionView.model_validate({"launch_call_id": launch_ids(life.request)[0], **written}))
    stage = Stage(temporal, f"queue-{uuid.uuid4().hex}")
    async with stage.workers(provider.steps):
        return (await Opened(provider, await opened(stage, provider, life)).ended()).session


async def test_a_launch_that_was_noted_and_never_made_is_made(temporal: Client) -> None:
    """The worker died in the first workflow task, which is repeated from its beginning."""
    provider, life = Provider(), life_of(group_of(is_seen=False, idle_timeout_s=0.5), f"session-{uuid.uuid4().hex}")
    view = await _reopened(temporal, provider, life)
    assert (view.state, view.end, view.opened_at) == (SessionState.STOPPED, SessionEnd.IDLE, _BEFORE)
    assert (of_stop(provider), provider.running) == ((1, 1), {})


async def test_a_noted_launch_is_looked_for_and_not_made_where_the_session_is_to_end(temporal: Client) -> None:
    life = life_of(group_of(), f"session-{uuid.uuid4().hex}")
    provider = Provider(launched=["server-0"], running={"server-0": launch_ids(life.request)[0]})
    view = await _reopened(temporal, provider, life, end=SessionEnd.ASKED)
    assert (view.state, view.end) == (SessionState.STOPPED, SessionEnd.ASKED)
    assert (of_stop(provider), provider.running) == ((1, 1), {})


@pytest.mark.parametrize(
    ("group", "lease_s", "end"), [(group_of(idle_timeout_s=0.5), None, SessionEnd.IDLE), (group_of(), 0.5, SessionEnd.LEASE_EXPIRED)]
)
async def test_a_ready_session_that_is_begun_anew_counts_its_times_from_then(
    temporal: Client, group: ToolGroup, lease_s: float | None, end: SessionEnd
) -> None:
    """Its uses are not recorded."""
    began = datetime.now(UTC)
    provider, life = Provider(), life_of(group, f"session-{uuid.uuid4().hex}", lease_s=lease_s)
    times = {"used_at": _BEFORE, "lease_ends_at": _BEFORE if lease_s else None}
    view = await _reopened(temporal, provider, life, state=SessionState.READY, launched={"server_id": "server-0"}, **times)
    assert (view.end, provider.launched, provider.stopped) == (end, [], ["server-0"])
    assert view.used_at is not None
    assert view.used_at > began


async def test_a_session_that_is_reset_after_its_end_tells_the_results_of_its_script(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(), runs=[SessionRun(), SessionRun(key="two")]) as live:
        account = await live.ended()
        again = await Opened(provider, await reset(temporal, live.handle)).ended()
    assert again == account
    assert [result.status for result in again.results] == ["success"] * 2


async def test_a_launch_is_looked_for_by_the_next_run_where_one_is_full(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    full_after(monkeypatch, 20)
    silences: list[ToolError] = [REFUSED] * 3
    provider = Provider(launches=[LOST], lists=silences)
    async with session(temporal, provider, group_of()) as live:
        session_id = live.handle.id.rpartition("/")[2]
        async with asyncio.timeout(BOUND_S):
            view = await Sessions(temporal).open(life_of(group_of(), session_id).request)
        run_id = (await live.handle.describe()).run_id
        await Sessions(temporal).stop("servers", session_id)
    assert (view.state, of_stop(provider), provider.lists) == (SessionState.READY, (1, 1), [])
    assert run_id != live.handle.first_execution_run_id


async def test_the_results_of_a_script_are_told_by_the_run_that_stops(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    full_after(monkeypatch, 5)
    provider = Provider(stops=[BUSY, BUSY])
    runs = [SessionRun(), SessionRun(key="two", params={"n": 2})]
    async with session(temporal, provider, group_of(is_seen=False), runs=runs) as live:
        account = await live.ended()
    assert [result.status for result in account.results] == ["success"] * 2
    assert (len({result.call_id for result in account.results}), len(provider.worked)) == (2, 2)
    assert account.session.stop_attempts == 2


async def test_a_key_that_is_asked_for_twice_at_once_is_one_call(temporal: Client) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(parallel=True)) as live:
        first = asyncio.create_task(live.run(key="one", params={"holds": True}))
        await provider.works.wait()
        run = SessionRun(key="one", params={"holds": True})
        again = await live.handle.start_update(
            names.RUN_IN_SESSION, run, wait_for_stage=WorkflowUpdateStage.ACCEPTED, result_type=ToolResult
        )
        provider.may_work.set()
        results = [await first, await again.result()]
        await live.handle.execute_update(names.STOP_SESSION)
    assert results[0] == results[1]
    assert provider.worked == ["server-0"]


async def test_a_full_run_takes_no_more_calls_so_that_it_ends(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.groups.limited._MOST_RUNS", 1)
    provider = Provider()
    async with session(temporal, provider, group_of(parallel=True)) as live:
        held = asyncio.create_task(live.run(params={"holds": True}))
        await provider.works.wait()
        await live.run()
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await live.run(key="one")
        provider.may_work.set()
        results = [await held, await Sessions(temporal).run("servers", live.handle.id.rpartition("/")[2], SessionRun(key="one"))]
        await live.handle.execute_update(names.STOP_SESSION)
    assert isinstance(refused.value.cause, ApplicationError)
    assert (refused.value.cause.type, [result.status for result in results]) == (names.SESSION_DRAINS, ["success"] * 2)


@pytest.mark.parametrize(("parallel", "bound_s"), [(False, 1.0), (True, BOUND_S)])
async def test_runs_of_a_session_overlap_only_where_its_group_says_so(temporal: Client, parallel: bool, bound_s: float) -> None:
    provider = Provider()
    async with session(temporal, provider, group_of(parallel=parallel)) as live:
        first = asyncio.create_task(live.run(params={"holds": True}))
        await provider.works.wait()
        provider.works.clear()
        second = asyncio.create_task(live.run(params={"holds": True}))
        with suppress(TimeoutError):
            async with asyncio.timeout(bound_s):
                await provider.works.wait()
        overlap = provider.works.is_set()
        provider.may_work.set()
        results = await asyncio.gather(first, second)
        await live.handle.execute_update(names.STOP_SESSION)
    assert ([result.status for result in results], overlap) == (["success"] * 2, parallel)


async def test_a_call_that_is_cancelled_before_it_begins_has_an_answer() -> None:
    task = asyncio.create_task(asyncio.sleep(0, "made"))
    task.cancel()
    assert await answered(task, "not made") == "not made"


@pytest.mark.parametrize(
    ("use", "kind", "said"),
    [
        (GroupUse(group_id="others"), "tool_not_found", "no group 'others'"),
        (GroupUse(group_id="servers", runs=(SessionRun(), SessionRun(tool_id="other"))), "validation_error", "'other' does not run in it"),
        (GroupUse(group_id="servers", params={"launched_by": "call-12345678"}), "validation_error", "params.launched_by"),
    ],
)
async def test_what_cannot_be_a_session_of_the_group_launches_nothing(temporal: Client, use: GroupUse, kind: str, said: str) -> None:
    group = group_of().model_copy(update={"verify": VerifyProbe(tool_id="launch", asks="launched_by")})
    stage, provider = Stage(temporal, f"script-{uuid.uuid4().hex[:8]}"), Provider(group=group)
    async with stage.workers(provider.steps):
        handle = await stage.start(names.USE_GROUP, use, workflow_id=f"use-{stage.queue}")
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, said in cause.message, provider.launched) == (kind, True, [])


async def test_a_group_without_a_lifecycle_is_refused_with_an_error_that_lies_as_deep_as_others(temporal: Client) -> None:
    group = group_of().model_copy(update={"lifecycle": False})
    stage, provider = Stage(temporal, f"advice-{uuid.uuid4().hex[:8]}"), Provider(group=group)
    async with stage.workers(provider.steps):
        handle = await stage.start(names.USE_GROUP, GroupUse(group_id="servers"), workflow_id=f"use-{stage.queue}")
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, "no lifecycle" in cause.message, provider.launched) == ("validation_error", True, [])
