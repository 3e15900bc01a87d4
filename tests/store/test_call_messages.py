"""Messages and questions of calls, and the answers."""

import asyncio
from datetime import timedelta

import pytest
from pydantic import JsonValue
from sqlalchemy import update

from engine.store.call_messages import CallMessages, call_messages
from engine.store.calls import CallTable
from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.tables import calls
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import CallRecord

CALL = "call-00000001"
QUESTION: dict[str, JsonValue] = {"method": "elicitation/create", "params": {"message": "Which?"}}


async def test_messages_are_numbered_in_the_order_in_which_they_are_said(database: Database) -> None:
    messages = CallMessages(database)
    assert await messages.say_all(CALL, [("progress", {"progress": 1})]) == 1
    assert await messages.say_all(CALL, [("log", {"data": "a"}), ("question", QUESTION)]) == 3
    assert await messages.say_all("call-00000002", [("log", {"data": "of another"})]) == 1
    found = await messages.after(CALL, 1)
    assert [(one.position, one.kind, one.payload, one.answer) for one in found] == [
        (2, "log", {"data": "a"}, None),
        (3, "question", QUESTION, None),
    ]


async def test_positions_have_no_gaps_whoever_speaks_at_once(database: Database) -> None:
    messages = CallMessages(database)
    await asyncio.gather(*(messages.say_all(CALL, [("log", {"data": number})]) for number in range(20)))
    assert [one.position for one in await messages.after(CALL)] == [*range(1, 21)]


async def test_a_question_is_answered_once_and_nothing_else_is(database: Database) -> None:
    messages = CallMessages(database)
    await messages.say_all(CALL, [("log", {"data": "a"})])
    await messages.say_all(CALL, [("question", QUESTION)])
    answers = [await messages.answer(CALL, position, {"result": {"n": position}}) for position in (1, 2, 2, 3)]
    assert answers == [False, True, False, False]
    assert (await messages.after(CALL, 1))[0].answer == {"result": {"n": 2}}


async def test_who_waits_for_an_answer_gets_it_from_any_process(database: Database) -> None:
    here, elsewhere = CallMessages(database), CallMessages(database)
    position = await here.say_all(CALL, [("question", QUESTION)])
    waiting = asyncio.create_task(here.wait_answer(CALL, position, 10))
    await asyncio.sleep(0)
    assert await elsewhere.answer(CALL, position, {"result": {}})
    assert await waiting == {"result": {}}


async def test_an_answer_is_waited_for_in_bounded_time(database: Database) -> None:
    messages = CallMessages(database)
    position = await messages.say_all(CALL, [("question", QUESTION)])
    with pytest.raises(TimeoutError):
        await messages.wait_answer(CALL, position, 0.05)


async def test_messages_are_forgotten_some_time_after_the_end_of_their_call(database: Database) -> None:
    messages = CallMessages(database)
    for number, ended_ago in enumerate((timedelta(minutes=1), timedelta(minutes=6))):
        record = _record(f"call-{number:08}")
        await CallTable(database).settle(record, ToolResult(status="success"), ())
        async with database.write() as connection:
            at = timestamp(now() - ended_ago)
            await connection.execute(update(calls).where(calls.c.call_id == record.call_id).values(settled_at=at))
        await messages.say_all(record.call_id, [("log", {"data": "a"})])
    await messages.say_all(CALL, [("log", {"data": "of a call that nobody recorded"})])
    await messages.say_all("call-00000009", [("log", {"data": "of one that goes on"})])
    async with database.write() as connection:
        old = timestamp(now() - timedelta(hours=27))
        await connection.execute(update(call_messages).where(call_messages.c.call_id == CALL).values(at=old))
    assert await messages.forget_ended() == ("forgot 2 messages of calls",)
    left = [len(await messages.after(call_id)) for call_id in ("call-00000000", "call-00000001", CALL, "call-00000009")]
    assert left == [1, 0, 0, 1]


def _record(call_id: str) -> CallRecord:
    return CallRecord(call_id=call_id, tool_id="t", version="1", fingerprint="f", workflow_id="w", run_id="r", created_at=now())
