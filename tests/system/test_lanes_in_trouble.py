"""Lanes while the service, Temporal or the database is frozen, the lane is ended from outside, or a tool harms its process.

In each case an accepted call has one result, a tool with side effects is asked at most once, and new calls use the lane again.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from contextlib import ExitStack, suppress
from typing import Any, TypeAlias

import httpx
import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle

from engine.calls.endings import STEP_LOST
from tests.system.service_process import run_tool
from tests.system.troubled_lane import TroubledLane, is_refused, troubled_lane
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.core.calls.results import reason_of
from toolagent_service import step_names

pytestmark = pytest.mark.timeout(600)

_MOST_UPDATES = 30
_AGAIN_S = 0.5
"""In which Temporal has a batch made again that it has not heard of."""

Handle: TypeAlias = WorkflowHandle[Any, Any]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[TroubledLane]:
    with troubled_lane(tmp_path_factory.mktemp("lane"), _MOST_UPDATES) as lane:
        yield lane


@pytest.fixture
def lane(shared: TroubledLane) -> TroubledLane:
    shared.require_that_it_goes_on()
    return shared


@pytest.mark.promise("accepted-means-ended", "never-twice", "lanes-make-nothing-twice")
@pytest.mark.parametrize("seconds", [3, pytest.param(15, marks=pytest.mark.long), pytest.param(60, marks=pytest.mark.long)])
def test_calls_of_a_frozen_service_end_once_wherever_they_were(lane: TroubledLane, seconds: float) -> None:
    made, settling = lane.ask_both(held=True), lane.ask_both(held=True)
    lane.wait_until_made([*made, *settling])
    with ExitStack() as trouble:
        with lane.temporal.halted():
            queued = lane.ask_both()
            lane.wait_until_claimed(queued)
            with lane.locked():
                lane.release(settling)
                wait_until(lambda: all(call.line in lane.far.answered for call in settling), "the tools have answered")
                trouble.enter_context(lane.frozen())
        time.sleep(seconds)
    lane.release(made)
    results = lane.ended_once([*made, *settling, *queued])
    assert [(result.error, result.metadata["way"]) for result in results] == [(None, "lane")] * 6
    assert [lane.far.begun[call.line] for call in (*made, *settling, *queued)] == [1] * 6
    lane.require_that_it_goes_on()


@pytest.mark.promise("accepted-means-ended", "never-twice", "lanes-make-nothing-twice")
@pytest.mark.parametrize("seconds", [3, pytest.param(15, marks=pytest.mark.long)])
def test_calls_of_a_service_that_is_frozen_in_a_batch_are_made_once_though_the_batch_comes_again(
    lane: TroubledLane, seconds: float
) -> None:
    """Temporal waits one second for the lane, and ten for a batch."""
    frozen = threading.Event()
    with ExitStack() as trouble, lane.once_a_tool_is_asked(lambda: trouble.enter_context(lane.frozen()), frozen):
        with lane.temporal.halted():
            first = lane.ask("echo", {"message": "has a batch of its own"})
            lane.wait_until_claimed([first])
            calls = [*lane.ask_both(held=True), *lane.ask_both()]
            lane.wait_until_claimed(calls)
        assert frozen.wait(30)
        time.sleep(seconds)
    time.sleep(_AGAIN_S)
    lane.release(calls)
    results = lane.ended_once([first, *calls])
    assert [(result.error, result.metadata["way"]) for result in results] == [(None, "lane")] * 5
    assert [lane.far.begun[call.line] for call in calls] == [1] * 4
    lane.require_that_it_goes_on()


async def _terminated(_temporal: Client, lane: Handle) -> None:
    await lane.terminate("a test")


async def _cancelled(_temporal: Client, lane: Handle) -> None:
    await lane.cancel()


async def _closed(_temporal: Client, lane: Handle) -> None:
    await lane.signal(step_names.CLOSE)


async def _reset(temporal: Client, lane: Handle) -> None:
    """Reset the lane to its beginning: Temporal delivers all batches of this run again."""
    run = (await lane.describe()).run_id
    ended = [event.event_id async for event in lane.fetch_history_events() if event.HasField("workflow_task_completed_event_attributes")]
    await temporal.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=temporal.namespace,
            workflow_execution=WorkflowExecution(workflow_id=lane.id, run_id=run),
            reason="a test",
            workflow_task_finish_event_id=ended[0],
            request_id="a test",
        )
    )


@pytest.mark.promise("accepted-means-ended", "lanes-make-nothing-twice")
@pytest.mark.parametrize("trouble", [_terminated, _reset, _cancelled, _closed])
def test_calls_in_a_lane_that_is_ended_from_outside_end_once(
    lane: TroubledLane, trouble: Callable[[Client, Handle], Coroutine[Any, Any, None]]
) -> None:
    before = lane.ask_both()
    lane.ended_once(before)
    name = lane.lane().workflow_id
    runs = lane.runs(name)

    async def bring() -> None:
        temporal = await lane.client()
        await trouble(temporal, temporal.get_workflow_handle(name))

    with lane.once_a_tool_is_asked(lambda: asyncio.run(bring())):
        # A batch is under way: what comes now has the next one.
        calls = [call for has_key in (True, False) for call in lane.ask_both(has_key=has_key)]
        lane.wait_until_made(calls[:1])
        calls += [call for has_key in (True, False) for call in lane.ask_both(has_key=has_key)]
        results = lane.ended_once(calls)
    assert [result.error for result in results] == [None] * 8
    assert [lane.far.begun[call.line] for call in (*before, *calls)] == [1] * 10
    lane.require_that_it_goes_on()
    assert lane.runs(name) - runs


@pytest.mark.promise("accepted-means-ended", "lanes-make-nothing-twice")
def test_while_temporal_is_away_callers_are_told_what_becomes_of_their_calls(lane: TroubledLane) -> None:
    stopped = threading.Event()
    # It is about to move, and its lane to take the next batch.
    with lane.once_a_tool_is_asked(lane.temporal.halt, stopped):
        try:
            moving = lane.ask_far("acts", held=True)
            wait_until(stopped.is_set, "the tool is asked")
            accepted, others = lane.ask_both(), lane.ask_both(has_key=False)
            told = [call.answer.result(30) for call in (*accepted, *others)]
        finally:
            lane.temporal.resume()
    assert [(answer.status_code, "Retry-After" in answer.headers) for answer in told] == [(httpx.codes.SERVICE_UNAVAILABLE, True)] * 4
    assert [is_refused(ToolResult.model_validate_json(answer.content)) for answer in told] == [False, False, True, True]
    ended = [lane.service.ended_task(call.call_id).result for call in accepted]
    wait_until(lambda: lane.runs(moving.call_id), "what could not move has moved")
    assert [result is not None and result.status for result in ended] == ["success"] * 2
    lane.release([moving])
    assert [result.error for result in lane.ended_once([moving, *accepted])] == [None] * 3
    assert [lane.far.begun[call.line] for call in (moving, *accepted, *others)] == [1, 1, 1, 0, 0]
    lane.require_that_it_goes_on()


@pytest.mark.promise("accepted-means-ended", "lanes-make-nothing-twice")
def test_calls_outlive_a_temporal_that_is_killed_while_they_are_in_a_lane(lane: TroubledLane) -> None:
    killed = threading.Event()
    with lane.once_a_tool_is_asked(lane.temporal.kill, killed):
        made = lane.ask_both(held=True)
        wait_until(killed.is_set, "a tool is asked")
    queued = [*lane.ask_both(), lane.ask_far("acts", has_key=False)]
    lane.wait_until_claimed(queued[:2])
    lane.temporal.start()
    wait_until(lambda: all(lane.runs(call.call_id) for call in made), "what could not move has moved")
    lane.release(made)
    calls = [*made, *queued]
    assert [result.error for result in lane.ended_once(calls)] == [None] * 5
    assert [lane.far.begun[call.line] for call in calls] == [1] * 5
    lane.require_that_it_goes_on()


@pytest.mark.promise("accepted-means-ended", "never-twice")
@pytest.mark.parametrize("seconds", [3, pytest.param(14, marks=pytest.mark.long), pytest.param(80, marks=pytest.mark.long)])
def test_calls_outlive_a_locked_database_before_they_are_made_and_when_they_have_answered(lane: TroubledLane, seconds: float) -> None:
    settling = lane.ask_both(held=True)
    lane.wait_until_made(settling)
    with ExitStack() as trouble:
        with lane.temporal.halted():
            queued = lane.ask_both()
            lane.wait_until_claimed(queued)
            trouble.enter_context(lane.locked())
        lane.release(settling)
        time.sleep(seconds)
    results = lane.ended_once([*settling, *queued])
    assert [result.error for result in results] == [None] * 4
    assert [result.metadata["way"] for result in results[:2]] == ["lane"] * 2
    assert [lane.far.begun[call.line] for call in (*settling, *queued)] == [1] * 4
    lane.require_that_it_goes_on()


@pytest.mark.promise("accepted-means-ended", "lanes-make-nothing-twice")
@pytest.mark.parametrize("seconds", [3, pytest.param(25, marks=pytest.mark.long)])
def test_calls_of_a_batch_in_which_one_blocks_the_process_end_once(lane: TroubledLane, seconds: float) -> None:
    with lane.temporal.halted():
        first = lane.ask("echo", {"message": "has a batch of its own"})
        lane.wait_until_claimed([first])
        calls = [*lane.ask_both(), lane.ask("blocks", {"seconds": seconds}), *lane.ask_both(), lane.ask("echo", {"message": "hello"})]
        lane.wait_until_claimed(calls)
    results = lane.ended_once([first, *calls])
    assert [(result.error, result.metadata["way"]) for result in results] == [(None, "lane")] * 7
    assert [lane.far.begun[call.line] for call in calls if call.tool.startswith("far")] == [1] * 4
    lane.require_that_it_goes_on()


@pytest.mark.promise("accepted-means-ended", "never-twice")
@pytest.mark.long
def test_a_call_that_kills_the_service_ends_and_its_neighbours_end_right(lane: TroubledLane) -> None:
    """A second attempt kills the service again, together with the second attempts of its neighbours."""
    held = lane.ask_both(held=True)
    lane.wait_until_made(held)
    with lane.temporal.halted():
        first = lane.ask("echo", {"message": "has a batch of its own"})
        lane.wait_until_claimed([first])
        calls = [*lane.ask_both(), lane.ask("kills", {}), *lane.ask_both()]
        lane.wait_until_claimed(calls)
    lane.release(held)
    kills = 0
    killer = calls[2]

    def has_ended() -> bool:
        nonlocal kills
        if not lane.service.is_running:
            lane.service.end()
            kills += 1
            with suppress(AssertionError):  # killed before it was healthy
                lane.service.start()
            return False
        try:
            return lane.service.task(killer.call_id).result is not None
        except httpx.HTTPError:
            return False

    wait_until(has_ended, "the call that kills has ended", 200)
    told = [lane.service.ended_task(call.call_id).result for call in (*held, *calls)]
    assert kills == 3, "in the lane, and in two attempts of its workflow"
    for call, result in zip((*held, *calls), told, strict=True):
        assert result is not None
        if call is killer:
            assert (result.error_type, reason_of(result)) == (ErrorType.EXECUTION_ERROR, STEP_LOST), result
        elif call.acts:
            assert lane.far.begun[call.line] <= 1
            assert result.status == "success" or result.error_type is ErrorType.EXECUTION_ERROR, result
        else:
            assert result.status == "success", result
    lane.require_that_it_goes_on()


@pytest.mark.promise("accepted-means-ended", "never-twice")
def test_calls_that_a_lane_left_end_where_there_are_no_lanes_any_more(lane: TroubledLane) -> None:
    made = lane.ask_both(held=True)
    lane.wait_until_made(made)
    with lane.temporal.halted():
        queued = lane.ask_both()
        lane.wait_until_claimed(queued)
        lane.service.kill()
    lane.release(made)
    lane.service.start(LANES="off")
    try:
        results = [lane.service.ended_task(call.call_id).result for call in (*made, *queued)]
        assert run_tool(lane.service.http, "echo", {"message": "hello"})[1].metadata["way"] == "workflow"
        wait_until(lambda: not lane.claims(), "nothing is claimed any more")
    finally:
        lane.service.kill()
        lane.service.start(LANES="all")
    acted, *others = results
    assert acted is not None
    assert acted.error is not None
    assert (acted.error.type, acted.error.details) == (ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
    assert [result is not None and result.status for result in others] == ["success"] * 3
    assert [lane.far.begun[call.line] for call in (*made, *queued)] == [1, 2, 1, 1]


def test_a_lane_goes_on_in_new_runs_at_a_server_that_takes_few_updates(lane: TroubledLane) -> None:
    name = lane.lane().workflow_id
    before = lane.runs(name)
    for number in range(3 * _MOST_UPDATES):
        status, result = run_tool(lane.service.http, "echo", {"message": number})
        assert (status, result.metadata["way"]) == (200, "lane"), result
    assert len(lane.runs(name) - before) >= 2
    assert lane.lane().figures.last_error == ""


def test_updates_of_others_that_fill_a_lane_lose_no_call_of_its_own(lane: TroubledLane) -> None:
    """A server refuses more than ten concurrent updates."""

    async def fill(trouble: ExitStack) -> Counter[str]:
        handle = (await lane.client()).get_workflow_handle(name)
        batch = {"calls": [{"call_id": "call-unknown", "tool_id": "echo"}]}
        ends = asyncio.gather(*(handle.execute_update(step_names.TAKE, batch) for _ in range(20)), return_exceptions=True)
        await asyncio.sleep(1)
        trouble.close()
        return Counter(type(end).__name__ for end in await ends)

    name = lane.lane().workflow_id
    calls = [*lane.ask_both(), *lane.ask_both(has_key=False)]
    with ExitStack() as trouble:
        trouble.enter_context(lane.frozen())
        ends = asyncio.run(fill(trouble))
    assert ends["dict"] >= 10
    assert [result.error for result in lane.ended_once(calls)] == [None] * 4
    lane.require_that_it_goes_on()
