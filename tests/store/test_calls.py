"""The table of calls."""

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy.exc import IntegrityError

from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.events import EventTable
from toolagent.contracts.calls import Caller, ToolResult
from toolagent.contracts.records import CallRecord, Event, EventType
from toolagent.core.failures import StoreUnavailableError

AT = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)
RECORD = CallRecord(
    call_id="call-12345678",
    tool_id="echo",
    version="1.0.0",
    fingerprint="f",
    workflow_id="w",
    run_id="r",
    params={"message": "漢字"},
    caller=Caller(caller_id="me", conversation_id="c"),
    created_at=AT,
)
RESULT = ToolResult(status="success", result={"a": [1, None]}, executed_at=AT, call_id="call-12345678", tool_id="echo")
STARTED = Event(event_id="call-12345678:started", event_type=EventType.EXECUTION_STARTED, tool_id="echo", call_id="call-12345678", at=AT)


@pytest.mark.promise("sent-is-marked-first")
async def test_a_call_is_marked_as_sent_once(database: Database) -> None:
    calls = CallTable(database)
    assert await calls.mark_sent(RECORD) == 1
    assert await calls.mark_sent(RECORD) == 0


async def test_a_call_that_may_be_repeated_is_counted_and_keeps_when_it_was_sent_first(database: Database) -> None:
    calls = CallTable(database)
    assert await calls.mark_sent(RECORD, again=True) == 1
    first = await calls.get(RECORD.call_id)
    assert first is not None
    assert [await calls.mark_sent(RECORD, again=True) for _ in range(2)] == [2, 3]
    await calls.unmark_sent(RECORD.call_id)
    assert await calls.get(RECORD.call_id) == first
    assert await calls.mark_sent(RECORD, again=True) == 3
    assert await calls.mark_sent(RECORD) == 0


@pytest.mark.promise("never-twice")
async def test_of_many_attempts_at_once_one_may_send(database: Database) -> None:
    calls = CallTable(database)
    assert sum(await asyncio.gather(*(calls.mark_sent(RECORD) for _ in range(20)))) == 1


@pytest.mark.promise("never-twice")
async def test_of_two_attempts_that_share_a_transaction_with_one_that_fails_one_may_send(database: Database) -> None:
    calls, nameless = CallTable(database), RECORD.model_copy(update={"call_id": "call-00000000", "tool_id": None})
    attempts = (calls.mark_sent(RECORD), calls.mark_sent(RECORD), calls.mark_sent(nameless, again=True))
    marked = await asyncio.gather(*attempts, return_exceptions=True)
    assert (marked[:2], type(marked[2])) == ([1, 0], IntegrityError)


@pytest.mark.promise("sent-is-marked-first")
async def test_many_calls_are_marked_at_once(database: Database) -> None:
    calls = CallTable(database)
    records = [RECORD.model_copy(update={"call_id": f"call-{number:08}", "params": {"strange": "a\x00b\ud800"}}) for number in range(30)]
    assert await asyncio.gather(*(calls.mark_sent(record) for record in records)) == [1] * 30
    assert await asyncio.gather(*(calls.mark_sent(record, again=True) for record in records)) == [2] * 30
    kept = await calls.get("call-00000029")
    assert kept is not None
    assert (kept.tool_id, kept.caller) == (RECORD.tool_id, RECORD.caller)


@pytest.mark.promise("never-twice")
async def test_a_settled_call_may_not_be_sent_any_more(database: Database) -> None:
    calls = CallTable(database)
    await calls.settle(RECORD, RESULT, ())
    assert (await calls.mark_sent(RECORD), await calls.mark_sent(RECORD, again=True)) == (0, 0)


@pytest.mark.promise("the-record-decides")
async def test_the_first_settlement_stands_and_later_ones_are_told_of_it(database: Database) -> None:
    calls, other = CallTable(database), RESULT.model_copy(update={"result": "later"})
    assert await calls.settle(RECORD, RESULT, ()) == RESULT
    assert await calls.settle(RECORD, other, ()) == RESULT
    record = await calls.get(RECORD.call_id)
    assert record is not None
    assert record.result == RESULT


@pytest.mark.promise("the-record-decides")
async def test_of_many_settlements_at_once_all_are_told_of_one(database: Database) -> None:
    calls = CallTable(database)
    results = [RESULT.model_copy(update={"result": number}) for number in range(10)]
    told = await asyncio.gather(*(calls.settle(RECORD, result, ()) for result in results))
    assert len({str(result.result) for result in told}) == 1


@pytest.mark.promise("the-record-decides")
async def test_of_calls_that_are_settled_together_each_is_told_of_its_own_first_end(database: Database) -> None:
    calls = CallTable(database)

    async def settled(number: int, said: str) -> ToolResult:
        call_id = f"call-{number:08}"
        named = RESULT.model_copy(update={"result": said, "call_id": call_id})
        return await calls.settle(RECORD.model_copy(update={"call_id": call_id}), named, ())

    await settled(2, "first")
    told = await asyncio.gather(*(settled(number, "second") for number in range(4)))
    assert [result.result for result in told] == ["second", "second", "first", "second"]


async def test_a_mark_that_was_taken_back_can_be_set_again(database: Database) -> None:
    calls = CallTable(database)
    await calls.mark_sent(RECORD)
    await calls.unmark_sent(RECORD.call_id)
    assert await calls.mark_sent(RECORD) == 1


@pytest.mark.promise("repeated-steps-are-harmless")
async def test_settling_twice_leaves_one_record_and_one_event(database: Database) -> None:
    calls, events = CallTable(database), EventTable(database)
    await calls.settle(RECORD, RESULT, (STARTED,))
    first = await calls.get(RECORD.call_id)
    await calls.settle(RECORD.model_copy(update={"created_at": datetime(2030, 1, 1, tzinfo=UTC)}), RESULT, (STARTED,))
    second = await calls.get(RECORD.call_id)
    assert first is not None
    assert second is not None
    assert second.settled_at is not None
    assert second.model_copy(update={"settled_at": None}) == RECORD.model_copy(update={"result": RESULT})
    assert second.created_at == first.created_at
    assert await events.of_call(RECORD.call_id) == (STARTED,)


async def test_settling_keeps_the_mark_that_the_call_was_sent(database: Database) -> None:
    calls = CallTable(database)
    await calls.mark_sent(RECORD)
    await calls.settle(RECORD, RESULT, ())
    assert await calls.mark_sent(RECORD) == 0


async def test_a_database_that_is_away_is_named(tmp_path: object) -> None:
    database = Database("sqlite+aiosqlite:////nowhere/at/all.db")
    with pytest.raises(StoreUnavailableError):
        await database.check()
    await database.close()
