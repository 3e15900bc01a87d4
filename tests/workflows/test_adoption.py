"""Single calls of a group's tools: whatever happens to their callers, launched servers are stopped once."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from pydantic import JsonValue
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from tests.workflows.session_paths import BUSY, GONE, LOST, REFUSED, Provider, group_of, life_of, opened
from tests.workflows.stage import AnyHandle, Stage, pauses_in
from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.groups import GroupRole
from toolagent.contracts.sessions import SessionAccount, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.calls.results import failed
from toolagent_service import step_names
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.contracts.steps import Admission, AdmitRequest, Answered, Grouped
from toolagent_service.groups.roles import session_for
from workers.temporal.host_workers import WORKFLOWS

_BOUND_S = 40


@dataclass
class Alone:
    """Makes calls one after the other."""

    stage: Stage
    provider: Provider

    async def begin(self, tool_id: str, **params: object) -> AnyHandle:
        call = ToolCall.model_validate({"tool_id": tool_id, "params": params})
        return await self.stage.start(names.INVOKE_TOOL, call, workflow_id=f"call-{uuid.uuid4().hex}")

    async def call(self, tool_id: str, **params: object) -> ToolResult:
        return await result_of(await self.begin(tool_id, **params))

    def session(self, launch: AnyHandle) -> WorkflowHandle[object, object]:
        return self.stage.client.get_workflow_handle(names.session_workflow("servers", session_for("servers", launch.id)))

    async def ended(self, launch: AnyHandle) -> SessionView:
        async with asyncio.timeout(_BOUND_S):
            return SessionAccount.model_validate(await self.session(launch).result()).session


async def result_of(handle: AnyHandle) -> ToolResult:
    async with asyncio.timeout(_BOUND_S):
        return ToolResult.model_validate(await handle.result())


@asynccontextmanager
async def alone(temporal: Client, provider: Provider) -> AsyncGenerator[Alone]:
    stage = Stage(temporal, f"queue-{uuid.uuid4().hex}")
    async with stage.workers(provider.steps):
        yield Alone(stage, provider)


async def test_calls_one_by_one_are_a_session(temporal: Client) -> None:
    async with alone(temporal, Provider()) as caller:
        launch = await caller.begin("launch")
        launched = await result_of(launch)
        ran = await caller.call("work", server_id="server-0")
        stopped = await caller.call("stop", server_id="server-0")
        view = await caller.ended(launch)
        late = await caller.call("stop", server_id="server-0")
    assert launched.result == {"server_id": "server-0"}
    assert launched.call_id == launch.id == view.launch_call_id
    assert [one.metadata["session_id"] for one in (launched, ran, stopped)] == [view.session_id] * 3
    assert (view.state, view.end, view.runs) == (SessionState.STOPPED, SessionEnd.ASKED, 1)
    assert caller.provider.stopped == ["server-0"]
    assert late.error == GONE


async def test_of_all_who_stop_at_once_one_does(temporal: Client) -> None:
    async with alone(temporal, Provider(stops=[BUSY])) as caller:
        launch = await caller.begin("launch")
        await result_of(launch)
        asked = [asyncio.create_task(caller.call("stop", server_id="server-0")) for _ in range(3)]
        await caller.session(launch).execute_update(names.STOP_SESSION)
        told = [(await one).status for one in asked]
        view = await caller.ended(launch)
    assert told.count("success") >= 2
    assert (view.state, caller.provider.stopped) == (SessionState.STOPPED, ["server-0"])


@dataclass
class Counting(Provider):
    admitted: Counter[str] = field(default_factory=Counter[str])
    """By its session, how often each call was."""

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        self.admitted.update(() if request.alone else (request.call_id,))
        return await super().admit(request)


async def test_a_session_answers_each_stop_that_came_too_late_once(temporal: Client) -> None:
    """Each answer is in its history, which is limited."""
    provider = Counting()
    async with alone(temporal, provider) as caller:
        launch = await caller.begin("launch")
        await result_of(launch)
        stops = await asyncio.gather(*(caller.begin("stop", server_id="server-0", slow=True) for _ in range(6)))
        assert {(await result_of(stop)).status for stop in stops} == {"success"}
        await caller.ended(launch)
    assert ([provider.admitted[stop.id] for stop in stops], provider.stopped) == ([1] * 6, ["server-0"])


async def test_who_launches_and_is_terminated_leaves_a_session_that_ends(temporal: Client) -> None:
    async with alone(temporal, Provider(group=group_of(idle_timeout_s=0.5))) as caller:
        launch = await caller.begin("launch", waits=True)
        await caller.provider.works.wait()
        await launch.terminate()
        caller.provider.may_work.set()
        view = await caller.ended(launch)
    assert (view.end, caller.provider.launched, caller.provider.stopped) == (SessionEnd.IDLE, ["server-0"], ["server-0"])


async def test_who_launches_and_cancels_stops_what_was_launched(temporal: Client) -> None:
    async with alone(temporal, Provider()) as caller:
        launch = await caller.begin("launch", waits=True)
        await caller.provider.works.wait()
        await launch.cancel()
        caller.provider.may_work.set()
        await result_of(launch)
        view = await caller.ended(launch)
    assert (view.end, caller.provider.launched, caller.provider.stopped) == (SessionEnd.CANCELLED, ["server-0"], ["server-0"])


async def test_who_launches_and_cancels_looks_at_the_record_soon_again(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session may be terminated by then, and signal nobody."""
    monkeypatch.setattr("workflows.groups.adoption._PAUSE", timedelta(seconds=0.5))
    async with alone(temporal, Provider()) as caller:
        launch = await caller.begin("launch", waits=True)
        for number in (3, 4):
            while len(found := pauses_in(await launch.fetch_history())) < number:  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.05)
            await launch.cancel()
        caller.provider.may_work.set()
        await result_of(launch)
    assert found[:4] == [0.5, 1.0, 2.0, 1.0]


async def test_a_stop_that_is_cancelled_goes_on(temporal: Client) -> None:
    async with alone(temporal, Provider(stops=[BUSY])) as caller:
        launch = await caller.begin("launch")
        await result_of(launch)
        stop = await caller.begin("stop", server_id="server-0", slow=True)
        while not caller.provider.views[-1].end:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.05)
        await stop.cancel()
        result = await result_of(stop)
        view = await caller.ended(launch)
        events = [event async for event in stop.fetch_history_events()]
    assert result.metadata["session_id"] == view.session_id
    assert (view.state, caller.provider.stopped) == (SessionState.STOPPED, ["server-0"])
    assert len(events) < 60, "it asks now and then"


async def test_a_session_that_is_terminated_while_it_launches_looks_for_what_it_launched(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workflows.groups.adoption._PAUSE", timedelta(seconds=0.5))
    async with alone(temporal, Provider()) as caller:
        launch = await caller.begin("launch", waits=True)
        await caller.provider.works.wait()
        view = caller.provider.views[-1]
        await caller.session(launch).terminate()
        caller.provider.may_work.set()
        while not caller.provider.launched:  # noqa: ASYNC110 - the step goes on for itself
            await asyncio.sleep(0.05)
        caller.provider.answers.clear()  # it was lost with the workflow
        life = life_of(group_of(), view.session_id, adopts=_adopted(launch)).model_copy(update={"view": view, "end": SessionEnd.CANCELLED})
        handle = await opened(caller.stage, caller.provider, life)
        result = await result_of(launch)
        account = SessionAccount.model_validate(await handle.result())
    assert result.error_type is ErrorType.CANCELLED
    assert (account.session.end, caller.provider.stopped, caller.provider.running) == (SessionEnd.CANCELLED, ["server-0"], {})


async def test_a_session_whose_workflow_is_away_is_asked_for_ever_more_rarely(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row lives, and no workflow may be started for days: the history of the asking one is limited."""
    for name, pause in {"_AGAIN": 0.1, "_LONGEST_AGAIN": 0.4}.items():
        monkeypatch.setattr(f"workflows.groups.adoption.{name}", timedelta(seconds=pause))
    async with alone(temporal, Provider()) as caller:
        launch = await caller.begin("launch")
        await result_of(launch)
        await caller.session(launch).terminate()
        stop = await caller.begin("stop", server_id="server-0")
        while len(found := pauses_in(await stop.fetch_history())) < 5:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.05)
        await stop.terminate()
    assert found[:5] == [0.1, 0.2, 0.4, 0.4, 0.4]


@dataclass
class Late(Provider):
    """The session of a stop ended before the stop reached it."""

    asked: list[str | None] = field(default_factory=list[str | None])

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        self.asked.append(request.stops)
        if len(self.asked) > 1:
            return Answered(result=failed(request.call_id, "stop", GONE, activity.info().started_time))
        return Grouped(role=GroupRole.STOP, group=self.group, session_id="session-that-ended")


@pytest.mark.parametrize(("bindings", "asked"), [({}, "session-that-ended"), ({"server_id": "$.server_id"}, None)], ids=["bare", "bound"])
async def test_a_stop_without_bindings_stays_that_of_the_session_it_was_first_said_to_be_of(
    temporal: Client, monkeypatch: pytest.MonkeyPatch, bindings: dict[str, str], asked: str | None
) -> None:
    """Admission would say another one, which is to go on. A stop that names its launch has no need."""
    monkeypatch.setattr("workflows.groups.adoption._AGAIN", timedelta(seconds=0.1))
    group = group_of()
    steps = (*group.steps[:2], group.steps[2].model_copy(update={"bindings": bindings}))
    async with alone(temporal, provider := Late(group=group.model_copy(update={"steps": steps}))) as caller:
        assert (await caller.call("stop", server_id="server-0")).error == GONE
    assert provider.asked == [None, asked]


def _adopted(launch: AnyHandle) -> dict[str, object]:
    call = {"tool_id": "launch", "params": {"waits": True}}
    return {"call": call, "call_id": launch.id, "workflow_id": launch.id, "run_id": launch.first_execution_run_id}


@pytest.mark.parametrize(
    ("provider", "kind", "end", "count"),
    [
        (Provider(has_room=False), ErrorType.REJECTED, SessionEnd.REFUSED, 0),
        (Provider(launches=[REFUSED]), ErrorType.PERMISSION_DENIED, SessionEnd.LAUNCH_FAILED, 0),
        (Provider(launches=[LOST], group=group_of(idle_timeout_s=0.5)), ErrorType.TIMEOUT, SessionEnd.IDLE, 1),
        (Provider(launches=[LOST], is_found=False), ErrorType.TIMEOUT, SessionEnd.LAUNCH_FAILED, 0),
    ],
    ids=["no-room", "refused", "lost-and-found", "never-was"],
)
async def test_a_launch_that_fails_is_answered_and_is_not_made_again(
    temporal: Client, monkeypatch: pytest.MonkeyPatch, provider: Provider, kind: ErrorType, end: SessionEnd, count: int
) -> None:
    monkeypatch.setattr("toolagent_service.groups.sessions.LOOKS", 2)
    async with alone(temporal, provider) as caller:
        launch = await caller.begin("launch")
        result = await result_of(launch)
        view = await caller.ended(launch)
    assert (result.error_type, result.metadata["session_id"]) == (kind, view.session_id)
    assert (view.end, len(provider.launched), len(provider.stopped), provider.running) == (end, count, count, {})


async def test_a_run_keeps_its_session_and_one_that_nobody_ends_does_not_for_ever(temporal: Client) -> None:
    async with alone(temporal, Provider(group=group_of(idle_timeout_s=2.0), lasts_s=5.0)) as caller:
        launch = await caller.begin("launch")
        await result_of(launch)
        run = await caller.begin("work", server_id="server-0", waits=True)
        await asyncio.sleep(2.5)
        view = await caller.session(launch).query(names.SESSION, result_type=SessionView)
        await run.terminate()
        ended = await caller.ended(launch)
    assert (view.state, ended.end) == (SessionState.READY, SessionEnd.IDLE)


async def test_a_lease_is_renewed_by_runs_and_by_asking(temporal: Client) -> None:
    async with alone(temporal, Provider()) as caller:
        handle = await opened(caller.stage, caller.provider, life_of(group_of(), f"session-{uuid.uuid4().hex}", lease_s=4.0))
        view = await handle.execute_update(names.SESSION, result_type=SessionView)
        leases = [view.lease_ends_at]
        for update, given in ((names.RENEW_SESSION, ()), (names.RUN_IN_SESSION, (SessionRun(),))):
            await handle.execute_update(update, args=given)
            leases.append((await handle.query(names.SESSION, result_type=SessionView)).lease_ends_at)
        ended = SessionAccount.model_validate(await handle.result()).session
    known = [at for at in leases if at is not None]
    assert known == sorted({*known})
    assert (len(known), ended.end, caller.provider.stopped) == (3, SessionEnd.LEASE_EXPIRED, ["server-0"])
    assert ended.ended_at is not None
    assert ended.ended_at >= known[-1]


async def test_a_session_is_told_nonsense(temporal: Client) -> None:
    async with alone(temporal, Provider()) as caller:
        launch = await caller.begin("launch")
        await result_of(launch)
        for signal in (step_names.USE_SESSION, step_names.STOP_BY):
            nonsense: tuple[list[JsonValue], ...] = ([], ["nonsense"], [{}], [1, 2])
            for said in nonsense:
                await caller.session(launch).signal(signal, args=said)
        await launch_told(caller)
        assert (await caller.call("stop", server_id="server-0")).status == "success"


async def launch_told(caller: Alone) -> None:
    """A call of its own that gets a signal about an answer it did not wait for."""
    call = ToolCall(tool_id="work", params={"server_id": "of-others"})
    handle = await caller.stage.client.start_workflow(
        names.INVOKE_TOOL,
        call,
        id=f"call-{uuid.uuid4().hex}",
        task_queue=caller.stage.queue,
        start_signal=step_names.ANSWERED,  # by itself it may come after the call's end
        start_signal_args=["nonsense", 3],
    )
    assert (await result_of(handle)).error == GONE


async def test_a_key_is_one_call_also_after_the_session_went_on_as_a_new_run(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.groups.limited._MOST_RUNS", 2)
    provider, queue = Provider(), f"queue-{uuid.uuid4().hex}"
    async with Worker(temporal, task_queue=queue, workflows=WORKFLOWS, activities=provider.steps):
        life: SessionLife = life_of(group_of(), f"session-{uuid.uuid4().hex}")
        first = await opened(Stage(temporal, queue), provider, life)
        handle = temporal.get_workflow_handle(first.id)
        keys = ["one", "two", "one", "three", "two"]
        results = [await _asked(handle, SessionRun(key=key)) for key in keys]
        run_id = (await handle.describe()).run_id
        await handle.execute_update(names.STOP_SESSION)
        await handle.result()
    assert run_id != first.first_execution_run_id
    assert len({result.call_id for result in results}) == len(provider.worked) == 3
    assert provider.stopped == ["server-0"]


async def test_a_launch_with_as_much_as_a_call_may_have_is_adopted(temporal: Client) -> None:
    provider = Provider()
    async with alone(temporal, provider) as caller:
        launch = await caller.begin("launch", text="a" * 1_048_560)
        assert (await result_of(launch)).status == "success"
        assert (await caller.call("stop", server_id="server-0")).status == "success"
        assert (await caller.ended(launch)).state is SessionState.STOPPED


async def _asked(handle: AnyHandle, run: SessionRun) -> ToolResult:
    async with asyncio.timeout(_BOUND_S):
        while True:
            try:
                return await handle.execute_update(names.RUN_IN_SESSION, run, result_type=ToolResult)
            except Exception as error:
                if names.SESSION_DRAINS not in repr(error.__cause__):
                    raise
                await asyncio.sleep(0.1)
