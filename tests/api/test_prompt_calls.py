"""Calls that are answered from their records: their number, workflows that do not end, and what is left behind."""

import asyncio
import gc
import logging
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

import pytest
import pytest_asyncio
from pydantic import JsonValue
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from api.client.prompt_calls import MOST_AHEAD, PromptCalls
from api.client.recording import Recording
from engine.calls.effects.ended import SettledCalls
from engine.store.calls import CallTable
from engine.store.clock import now
from engine.store.database import Database
from tests.conftest import impatient, temporal_server
from toolagent.client import names
from toolagent.client.failures import CallRefusedError
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.records import CallRecord
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import succeeded
from workers.temporal.connection import connect, register_search_attributes

_BOUND_S = 60.0
_STEP = timedelta(seconds=30)


@workflow.defn(name=names.INVOKE_TOOL)
class Held:
    """A workflow of a call that is recorded, and ends when it is released; with `garbled` its answer is unreadable."""

    def __init__(self) -> None:
        self._is_held = True

    @workflow.run
    async def run(self, call: JsonValue) -> JsonValue:
        asked = ToolCall.model_validate(call)
        self._is_held = bool(asked.params.get("held"))
        said = await workflow.execute_local_activity("record", args=[asked, workflow.info().workflow_id], start_to_close_timeout=_STEP)
        await workflow.wait_condition(lambda: not self._is_held)
        return {"status": "garbled"} if asked.params.get("garbled") else said

    @workflow.signal
    def let_go(self) -> None:
        self._is_held = False


class Stage:
    """The client with its surroundings, and the actions of a test."""

    def __init__(self, client: Client, database: Database) -> None:
        self.client = client
        self._own = uuid4().hex
        self.records = CallTable(database)
        self.settled = SettledCalls()
        self.calls = PromptCalls(client, self.settled, Recording((), lambda: None), patience_s=0.5)

    @activity.defn
    async def record(self, call: ToolCall, call_id: str) -> ToolResult:
        """Commit the end of the call; `elsewhere` is another host, which cannot tell this process."""
        await asyncio.sleep(float(str(call.params.get("seconds", 0))))
        at = now()
        record = CallRecord(
            call_id=call_id, tool_id=call.tool_id, version="1.0.0", fingerprint="f", workflow_id=call_id, run_id="r", created_at=at
        )
        result = succeeded(call_id, call.tool_id, call.params, at, execution_time=0.0, metadata={})
        stands = await self.records.settle(record, result, ())
        if not call.params.get("elsewhere"):
            self.settled.tell(stands)
        return stands

    def asked(self, key: str, **params: JsonValue) -> "asyncio.Task[ToolResult]":
        call = ToolCall(tool_id="echo", params=params, idempotency_key=self._key(key))
        return asyncio.create_task(self.calls.run(call))

    async def answer(self, key: str, **params: JsonValue) -> ToolResult:
        return await asyncio.wait_for(self.asked(key, **params), _BOUND_S)

    async def let_go(self, *keys: str) -> None:
        for key in keys:
            await self.client.get_workflow_handle(call_id_for_key(None, self._key(key))).signal("let_go")

    def _key(self, key: str) -> str:
        return f"{self._own} {key}"

    async def recorded(self, key: str) -> CallRecord:
        async with asyncio.timeout(_BOUND_S):
            while (record := await self.records.get(call_id_for_key(None, self._key(key)))) is None:  # noqa: ASYNC110 - a database has no events
                await asyncio.sleep(0.02)
        return record


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(_BOUND_S):
        while not look():  # noqa: ASYNC110 - Temporal tells it to the client, not to us
            await asyncio.sleep(0.02)


def followed() -> list[str]:
    """Tasks of this process that wait for the end of a call."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("end of ") and not task.done()]


def never_retrieved(caplog: pytest.LogCaptureFixture) -> list[str]:
    gc.collect()
    return [record.getMessage() for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR]


@asynccontextmanager
async def staged(client: Client, database: Database) -> AsyncGenerator[Stage]:
    await register_search_attributes(client)
    stage = Stage(client, database)
    async with Worker(client, task_queue=names.TASK_QUEUE, workflows=[Held], activities=[stage.record], max_cached_workflows=100):
        yield stage
        await stage.calls.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """One server for all tests of this file. No other worker knows its calls; each test has its own keys."""
    with temporal_server(tmp_path_factory.mktemp("temporal")) as (address, _):
        yield address


@pytest_asyncio.fixture
async def stage(address: str, database: Database) -> AsyncGenerator[Stage]:
    async with staged(await connect(address, "default", sandbox=False, patience_s=30), database) as stage:
        yield stage


async def test_a_call_is_answered_when_its_record_is_committed_and_before_its_workflow_ends(stage: Stage) -> None:
    result = await stage.answer("one", held=True)
    record = await stage.records.get(result.call_id)
    assert record is not None
    assert record.result == result
    assert stage.calls.ahead == 1
    await stage.let_go("one")
    await until(lambda: stage.calls.ahead == 0)
    assert followed() == []


@pytest.mark.parametrize("seconds", [0, 0.3], ids=["at once", "after Temporal is asked too"])
async def test_beyond_the_most_a_caller_waits_for_the_end(stage: Stage, seconds: float) -> None:
    keys = [f"held-{number}" for number in range(MOST_AHEAD)]
    answers = await asyncio.gather(*(stage.answer(key, held=True, seconds=seconds) for key in keys))
    assert [answer.status for answer in answers] == ["success"] * MOST_AHEAD
    assert stage.calls.ahead == MOST_AHEAD

    beyond = stage.asked("beyond", held=True)
    await stage.recorded("beyond")
    done, _ = await asyncio.wait((beyond,), timeout=0.5)
    assert not done
    await stage.let_go("beyond")
    assert (await asyncio.wait_for(beyond, _BOUND_S)).status == "success"

    await stage.let_go(keys[0])
    await until(lambda: stage.calls.ahead == MOST_AHEAD - 1)
    assert (await stage.answer("prompt again", held=True)).status == "success"
    assert stage.calls.ahead == MOST_AHEAD
    await stage.let_go(*keys[1:], "prompt again")
    await until(lambda: stage.calls.ahead == 0)


async def test_what_is_settled_on_another_host_is_answered_by_the_end_of_its_workflow(stage: Stage) -> None:
    waiting = stage.asked("far", held=True, elsewhere=True)
    await stage.recorded("far")
    done, _ = await asyncio.wait((waiting,), timeout=0.5)
    assert not done
    await stage.let_go("far")
    assert (await asyncio.wait_for(waiting, _BOUND_S)).status == "success"
    assert (stage.calls.ahead, followed()) == (0, [])


async def test_a_key_asked_again_says_the_same_whether_the_call_goes_on_or_has_ended(stage: Stage) -> None:
    first = await stage.answer("again", held=True)
    repeated = stage.asked("again", held=True)
    await stage.let_go("again")
    assert await asyncio.wait_for(repeated, _BOUND_S) == first
    assert await stage.answer("again", held=True) == first
    with pytest.raises(CallRefusedError) as refused:
        await stage.answer("again", held=False)
    assert refused.value.result.error_type is ErrorType.REJECTED
    await until(lambda: stage.calls.ahead == 0)


async def test_a_caller_who_leaves_takes_up_no_place_and_leaves_nobody_waiting(stage: Stage) -> None:
    waiting = stage.asked("left", held=True, elsewhere=True)
    await until(lambda: followed() != [])
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert waiting.cancelled()
    await until(lambda: followed() == [])
    assert stage.calls.ahead == 0
    await stage.let_go("left")


async def test_closing_stops_looking_and_leaves_the_answers_to_those_who_still_wait(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    await asyncio.gather(*(stage.answer(f"answered-{number}", held=True) for number in range(4)))
    working, far = stage.asked("working", held=True, seconds=0.5), stage.asked("far", held=True, elsewhere=True)
    await stage.recorded("far")
    await stage.calls.close()
    assert stage.calls.ahead == 2
    assert (await asyncio.wait_for(working, _BOUND_S)).status == "success"
    await stage.let_go("far")
    assert (await asyncio.wait_for(far, _BOUND_S)).status == "success"
    await until(lambda: stage.calls.ahead == 0)
    assert followed() == []
    assert never_retrieved(caplog) == []


async def test_an_end_that_cannot_be_read_is_logged_and_does_not_take_up_a_place_for_ever(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    result = await stage.answer("garbled", held=True, garbled=True)
    assert result.status == "success"
    await stage.let_go("garbled")
    await until(lambda: stage.calls.ahead == 0)
    told = [record for record in caplog.records if record.name == "api.client.prompt_calls"]
    assert [(record.levelname, result.call_id in record.getMessage(), bool(record.exc_info)) for record in told] == [("ERROR", True, True)]
    assert never_retrieved(caplog) == []


async def test_a_temporal_that_dies_after_the_answer_is_told_of_and_costs_no_place(
    database: Database, own_temporal: tuple[str, subprocess.Popen[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(await impatient(own_temporal[0]), database) as stage:
        results = await asyncio.gather(*(stage.answer(f"last-{number}", held=True) for number in range(3)))
        own_temporal[1].kill()
        own_temporal[1].wait(_BOUND_S)
        await until(lambda: stage.calls.ahead == 0)
    told = [record for record in caplog.records if record.name == "api.client.prompt_calls"]
    assert {record.levelname for record in told} == {"WARNING"}
    assert all(any(result.call_id in record.getMessage() for record in told) for result in results)
    assert never_retrieved(caplog) == []
