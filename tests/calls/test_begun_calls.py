"""A call that begins at its admission is made once; it is recorded there if it is short, and continued by its attempt if it is not."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.activity import ActivityCancellationDetails
from temporalio.testing import ActivityEnvironment

from activities.call_tool import CallTool
from engine.calling.attempt import Attempt
from engine.calling.exchange import Exchange, Send
from engine.calling.fast_call import BegunCalls
from engine.calling.intake import Intake
from engine.calling.queued_call import QueuedCall
from engine.calling.turn import Again, Turn
from engine.store.calls import CallTable
from engine.store.database import Database
from tests.calls import parts
from tests.calls.parts import ANSWER, CALL_ID, exchange_of, serving, supervising
from tests.parts import begun_calls, prompt_settlement, tool_registry
from toolagent.contracts.calls import ErrorType, ToolCall
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.steps import (
    Admission,
    AdmitRequest,
    Admitted,
    Answered,
    CallPlan,
    CallRequest,
    Finished,
    OfSession,
    Placement,
)

REQUEST = AdmitRequest(call=ToolCall(tool_id="t"), call_id=CALL_ID, workflow_id=CALL_ID, run_id="r", is_new=True)
PLAN = parts.PLAN.model_copy(update={"placement": Placement(queue="h1/default", host="h1")})


@dataclass
class Tool:
    """A raw HTTP server that answers when the test releases it."""

    requests: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        self.reached.set()
        leaves, released = asyncio.create_task(reader.read()), asyncio.create_task(self.released.wait())
        await asyncio.wait((leaves, released), return_when=asyncio.FIRST_COMPLETED)
        if leaves.done():
            self.left.set()
        writer.write(ANSWER)
        writer.close()
        leaves.cancel()
        released.cancel()


@dataclass
class Desk:
    """`another` is a process after the death of this one: it knows no begun call."""

    tool: Tool
    entry: ToolEntry
    calls: CallTable
    begun: BegunCalls
    own: CallTool
    another: CallTool
    intake: Intake

    async def begin(self, plan: CallPlan = PLAN) -> Admission:
        return await self.begun.begin(Admitted(plan=plan), self.entry, REQUEST.model_copy(update={"call_id": plan.call_id}))

    async def attempt(self, call: CallTool, *, is_cancelled: bool = False) -> Finished:
        request = CallRequest(plan=PLAN, workflow_id=CALL_ID, run_id="r", is_cancelled=is_cancelled)
        return await ActivityEnvironment().run(call.call_tool, request)


@pytest_asyncio.fixture
async def desk(database: Database, tmp_path: Path) -> AsyncGenerator[Desk]:
    registry, calls, tool, intake = tool_registry(database), CallTable(database), Tool(), Intake()
    async with supervising(database) as supervisor, serving(tool.serve) as source:
        exchange = exchange_of(database, tmp_path, supervisor, intake)
        settlement = prompt_settlement(registry, calls, database, tmp_path / "steps")
        begun = begun_calls(supervisor, exchange, calls, settlement, intake, budget_s=0.2)
        queued = QueuedCall(registry, supervisor, exchange, calls, "h1")
        own = CallTool(queued, begun, settlement, intake)
        another = CallTool(queued, begun_calls(supervisor, exchange, calls, settlement, intake), settlement, intake)
        manifest = ToolManifest(tool_id="t", name="T")
        await registry.register(manifest, (source,))
        yield Desk(tool, ToolEntry(manifest=manifest, sources=(source,)), calls, begun, own, another, intake)
        tool.released.set()


@pytest.mark.promise("short-calls-begin-at-once")
async def test_a_short_call_is_made_and_recorded_where_it_is_admitted(desk: Desk) -> None:
    desk.tool.released.set()
    assert desk.begun.takes(PLAN, desk.entry, REQUEST)
    admission = await desk.begin()
    for _ in range(100):  # the machine is busy
        if isinstance(admission, Answered):
            break
        admission = await desk.begun.known(REQUEST)
    assert isinstance(admission, Answered)
    record = await desk.calls.get(CALL_ID)
    assert record is not None
    assert (record.result, record.sent_at is not None) == (admission.result, True)
    assert admission.result.result == {"ok": True}


@pytest.mark.promise("short-calls-begin-at-once")
async def test_the_attempt_of_a_longer_call_waits_for_its_end_and_sends_nothing(desk: Desk) -> None:
    admission = await desk.begin()
    assert admission == Admitted(plan=PLAN, is_begun=True)
    assert await desk.begun.known(REQUEST) == admission  # asked again, as after a task of the workflow that was lost
    assert await desk.begun.known(REQUEST.model_copy(update={"run_id": "another"})) is None
    attempt = asyncio.create_task(desk.attempt(desk.own))
    desk.tool.released.set()
    ended = await attempt
    record = await desk.calls.get(CALL_ID)
    assert record is not None
    assert record.result is not None
    assert (ended.output, ended.settled, desk.tool.requests) == ({"ok": True}, record.result.model_copy(update={"result": None}), 1)


@pytest.mark.promise("never-twice")
async def test_a_call_that_was_begun_by_a_process_that_died_is_not_sent_again(desk: Desk) -> None:
    await desk.begin()
    ended = await desk.attempt(desk.another)
    assert ended.error is not None
    assert (ended.error.type, ended.error.details) == (ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
    assert desk.tool.requests == 1


@pytest.mark.promise("cancel-closes")
@pytest.mark.parametrize("is_heard_later", [False, True])
async def test_a_begun_call_that_is_cancelled_ends_and_its_tool_is_left(desk: Desk, is_heard_later: bool) -> None:
    await desk.begin()
    environment, is_under_way = ActivityEnvironment(), asyncio.Event()
    environment.on_heartbeat = lambda *_: is_under_way.set()
    request = CallRequest(plan=PLAN, workflow_id=CALL_ID, run_id="r", is_cancelled=not is_heard_later)
    attempt = asyncio.create_task(environment.run(desk.own.call_tool, request))
    if is_heard_later:
        async with asyncio.timeout(5):
            await is_under_way.wait()
        environment.cancel(ActivityCancellationDetails(cancel_requested=True))
    ended = await attempt
    assert ended.error is not None
    assert ended.error.type is ErrorType.CANCELLED
    async with asyncio.timeout(5):
        await desk.tool.left.wait()


async def test_an_answer_that_cannot_be_recorded_at_once_is_kept_for_the_attempt(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    is_tried = asyncio.Event()

    async def away(*_: object, **_more: object) -> None:
        is_tried.set()
        raise StoreUnavailableError("The database is away.")

    desk.tool.released.set()
    with monkeypatch.context() as patched:
        patched.setattr(CallTable, "settle", away)
        assert await desk.begin() == Admitted(plan=PLAN, is_begun=True)
        await is_tried.wait()
    ended = await desk.attempt(desk.own)
    assert (ended.output, ended.settled is not None, desk.tool.requests) == ({"ok": True}, True, 1)


async def test_an_answer_that_is_there_is_not_thrown_away_by_a_worker_that_stops(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    is_tried, goes_on = asyncio.Event(), asyncio.Event()

    async def away(*_: object, **_more: object) -> None:
        is_tried.set()
        await goes_on.wait()
        raise StoreUnavailableError("The database is away.")

    monkeypatch.setattr(CallTable, "settle", away)
    await desk.begin()
    environment = ActivityEnvironment()
    attempt = asyncio.create_task(environment.run(desk.own.call_tool, CallRequest(plan=PLAN, workflow_id=CALL_ID, run_id="r")))
    desk.tool.released.set()
    await is_tried.wait()
    environment.cancel(ActivityCancellationDetails(worker_shutdown=True))
    goes_on.set()
    assert (await attempt).output == {"ok": True}


async def test_the_attempt_after_a_begun_call_knows_what_its_tool_has_had(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    known = list[float]()

    async def attempted(_: QueuedCall, _plan: CallPlan, turn: Turn) -> Finished:
        known.append(turn.earlier_s)
        return Finished(output={})

    async def broken(_: Exchange, _send: Send, _attempt: Attempt, turn: Turn) -> Finished:
        turn.sending()
        await asyncio.sleep(0.3)
        raise Again("connection_lost", "The connection was lost.")

    monkeypatch.setattr(QueuedCall, "attempt", attempted)
    monkeypatch.setattr(Exchange, "make", broken)
    await desk.begin()
    await desk.attempt(desk.own)
    assert known[0] >= 0.3


@pytest.mark.promise("temporal-is-the-queue")
async def test_a_call_that_waited_for_its_slot_does_not_begin_once_the_host_drains(desk: Desk) -> None:
    first = await desk.begin()
    other = PLAN.model_copy(update={"call_id": "call-00000002"})
    waiting = asyncio.create_task(desk.begin(other))
    await asyncio.sleep(0)
    desk.intake.heed("a drain")
    desk.tool.released.set()
    assert (first, await waiting, desk.tool.requests) == (Admitted(plan=PLAN, is_begun=True), Admitted(plan=other), 1)


@pytest.mark.promise("temporal-is-the-queue")
async def test_a_call_that_finds_no_slot_waits_in_its_queue(desk: Desk) -> None:
    await desk.begin()
    other = PLAN.model_copy(update={"call_id": "call-00000002"})
    assert await desk.begin(other) == Admitted(plan=other)
    assert desk.tool.requests == 1


@pytest.mark.parametrize("given", [{"session": OfSession(group_id="g", session_id="session-00000001")}, {"prefer": "h1"}])
async def test_a_call_of_a_session_does_not_begin_where_it_is_admitted(desk: Desk, given: dict[str, object]) -> None:
    assert not desk.begun.takes(PLAN, desk.entry, REQUEST.model_copy(update=given))
