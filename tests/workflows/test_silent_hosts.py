"""Calls whose host falls silent, on a real Temporal server with scripted steps."""

import asyncio
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import pytest
from pydantic import JsonValue
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.workflows.stage import pauses_in
from tests.workflows.steps import Steps
from tests.workflows.test_invoke_tool import Bound, running, start
from tests.workflows.test_unsure_sessions import full_after
from toolagent.contracts.calls import ErrorType
from toolagent_service import step_names
from toolagent_service.contracts.steps import Admission, AdmitRequest, CallRequest, Finished, Held, Placement
from workflows import options


@pytest.mark.promise("host-affinity")
async def test_a_call_whose_host_is_silent_is_placed_elsewhere(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "HOST_PATIENCE", timedelta(seconds=1))
    # In Temporal's sandbox the workflow would have constants of its own.
    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Steps(queue="host-dead/default", host="host-dead", elsewhere=Placement(queue=queue, host="host-alive"))
    async with running(temporal, steps, queue) as own:
        result = await (await start(temporal, own)).result()
    assert result.status == "success"
    assert [request.plan.placement.host for request in steps.placed] == ["host-dead"]


@pytest.mark.promise("host-affinity")
async def test_where_a_call_that_is_bound_to_a_host_waits_on_is_asked_with_that_host(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "HOST_PATIENCE", timedelta(seconds=1))
    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Steps(queue="host-busy/default", host="host-busy", elsewhere=Placement(queue=queue, host="host-alive"))
    async with running(temporal, steps, queue) as own:
        handle = await temporal.start_workflow(Bound.run, "host-busy", id=f"bound-{uuid.uuid4().hex}", task_queue=own)
        await asyncio.wait_for(handle.result(), 60)
    assert [(request.plan.placement.host, request.prefer) for request in steps.placed] == [("host-busy", "host-busy")]


@pytest.mark.promise("host-affinity")
async def test_a_call_that_is_lost_with_its_host_is_made_elsewhere_at_once(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_HEARTBEAT", timedelta(seconds=3))  # of which the second attempt may take as much as the first

    async def silent_at_first(request: CallRequest) -> Finished:
        if not request.lost:
            activity.heartbeat("", 1, 0.5, 3)
            await asyncio.Event().wait()
        return Finished(output=[request.lost, *request.told])

    dead, alive = (f"q-{uuid.uuid4().hex[:8]}" for _ in range(2))
    elsewhere = Placement(queue=alive, host="host-alive")
    steps = Steps(queue=dead, host="host-dead", elsewhere=elsewhere, behaviour=silent_at_first)
    async with running(temporal, steps, dead, alive) as own:
        result = await (await start(temporal, own)).result()
    assert result.result == [1, "", 1, 0.5, 3]
    assert [request.plan.placement.host for request in steps.calls] == ["host-dead", "host-alive"]


async def test_a_call_that_kills_each_host_ends_though_no_worker_counts_what_is_lost(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of an older version do not, and take calls while hosts are updated one after the other."""
    monkeypatch.setattr(options, "_HEARTBEAT", timedelta(seconds=0.5))

    async def silent(_request: CallRequest) -> Finished:
        await asyncio.Event().wait()
        raise AssertionError("Nobody sets it.")

    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Steps(queue=queue, host="host-0", elsewhere=Placement(queue=queue, host="host-1"), behaviour=silent)
    async with running(temporal, steps, queue) as own:
        result = await asyncio.wait_for((await start(temporal, own)).result(), 60)
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.EXECUTION_ERROR, {"outcome": "unknown"})
    assert "Each host that made the call fell silent" in result.error.message
    assert [request.lost for request in steps.calls] == [0, 1, 2, 3]


async def test_a_call_that_is_cancelled_while_its_host_dies_is_made_nowhere_else(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_HEARTBEAT", timedelta(seconds=3))
    released = asyncio.Event()

    async def silent(_request: CallRequest) -> Finished:
        """Send heartbeats until the cancellation, and none after it."""
        with suppress(asyncio.CancelledError):
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        await released.wait()
        return Finished()

    steps = Steps(queue=f"q-{uuid.uuid4().hex[:8]}", host="host-dead", behaviour=silent)
    async with running(temporal, steps, steps.queue) as own:
        handle = await start(temporal, own)
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.cancel()
        result = await handle.result()
        released.set()
    assert (result.error_type, steps.placed, len(steps.calls)) == (ErrorType.EXECUTION_ERROR, [], 1)


@pytest.mark.parametrize("is_taken", [True, False])
async def test_only_of_a_call_that_no_worker_took_is_it_said_that_none_did(temporal: Client, *, is_taken: bool) -> None:
    async def broken(_request: CallRequest) -> Finished:
        raise ApplicationError("The worker stops.")

    steps = Steps(queue=f"q-{uuid.uuid4().hex[:8]}", behaviour=broken, queue_timeout_s=1)
    async with running(temporal, steps) as own:
        handle = await start(temporal, own)
        if is_taken:
            async with Worker(temporal, task_queue=steps.queue, activities=[steps.call_tool]):
                await asyncio.wait_for(steps.called.wait(), 60)
        result = await handle.result()
    assert result.error is not None
    unknown: JsonValue = {"outcome": "unknown"}
    expected = (ErrorType.EXECUTION_ERROR, unknown) if is_taken else (ErrorType.UNAVAILABLE, {"queue": steps.queue})
    assert (result.error_type, result.error.details) == expected


@dataclass
class AtSilentDoor(Steps):
    """A living front door has the call, and does not read its queue any more; after this many admissions the call is not its own."""

    admissions: int = 6
    admitted: int = 0
    moves_at: int = 0
    """From this admission on another door has it."""

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        self.admitted += 1
        door = f"{self.queue}-b" if 0 < self.moves_at <= self.admitted else self.queue
        return Held(door=door) if self.admitted < self.admissions else await super().admit(request)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, pause in {"_DOOR_PATIENCE": 0.1, "JOIN_PAUSE": 0.1, "LONGEST_JOIN_PAUSE": 0.4}.items():
        monkeypatch.setattr(options, name, timedelta(seconds=pause))


@pytest.mark.usefixtures("short_pauses")
async def test_a_door_that_does_not_answer_is_asked_ever_more_rarely(temporal: Client) -> None:
    """It may renew its lease for days: the history of the asking workflow is limited."""
    steps = AtSilentDoor(queue=f"q-{uuid.uuid4().hex[:8]}")
    async with running(temporal, steps, steps.queue) as own:
        handle = await start(temporal, own)
        assert (await handle.result()).status == "success"
    assert pauses_in(await handle.fetch_history()) == [0.1, 0.2, 0.4, 0.4, 0.4]


@pytest.mark.usefixtures("short_pauses")
async def test_a_door_that_has_just_got_the_call_is_asked_soon(temporal: Client) -> None:
    steps = AtSilentDoor(queue=f"q-{uuid.uuid4().hex[:8]}", moves_at=4)
    async with running(temporal, steps, steps.queue) as own:
        handle = await start(temporal, own)
        assert (await handle.result()).status == "success"
    assert pauses_in(await handle.fetch_history()) == [0.1, 0.2, 0.4, 0.1, 0.2]


@pytest.mark.usefixtures("short_pauses")
async def test_a_call_that_is_cancelled_in_a_long_pause_does_not_wait_for_its_end(
    temporal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, pause in {"JOIN_PAUSE": 2, "LONGEST_JOIN_PAUSE": 60}.items():
        monkeypatch.setattr(options, name, timedelta(seconds=pause))
    steps = AtSilentDoor(queue=f"q-{uuid.uuid4().hex[:8]}", admissions=99)
    async with running(temporal, steps, steps.queue) as own:
        handle = await start(temporal, own)
        while len(pauses_in(await handle.fetch_history())) < 2:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.05)
        steps.admissions = steps.admitted + 2
        await handle.cancel()
        result = await handle.result()
    assert (result.error_type, steps.calls, pauses_in(await handle.fetch_history())) == (ErrorType.CANCELLED, [], [2, 4, 2])


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_who_waits_for_a_silent_door_for_weeks_goes_on_in_new_runs(
    temporal: Client, monkeypatch: pytest.MonkeyPatch, *, is_cancelled: bool
) -> None:
    full_after(monkeypatch, 50)
    steps = AtSilentDoor(queue=f"q-{uuid.uuid4().hex[:8]}", admissions=99)
    async with running(temporal, steps, steps.queue) as own, asyncio.timeout(25):
        handle = await start(temporal, own, of="somebody")
        if is_cancelled:
            await handle.cancel()
        first = temporal.get_workflow_handle(handle.id, run_id=handle.result_run_id)
        while (await first.describe()).status is not WorkflowExecutionStatus.CONTINUED_AS_NEW:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        steps.admissions = steps.admitted + 2
        result = await handle.result()
        memo = await (await handle.describe()).memo()
    expected = (handle.id, ErrorType.CANCELLED, 0) if is_cancelled else (handle.id, None, 1)
    assert (result.call_id, result.error_type, len(steps.calls), memo["of"]) == (*expected, "somebody")
