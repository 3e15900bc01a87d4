"""The table of claims: each call has one owner, from its acceptance to its end."""

import asyncio
from datetime import timedelta

import pytest
from pydantic import JsonValue
from sqlalchemy import update

from engine.store.calls import CallTable, OvertakenError
from engine.store.claims import NOBODY, WORKFLOW, Claim, ClaimTable
from engine.store.clock import now
from engine.store.database import Database
from engine.store.tables import claims as rows
from tests.store.test_calls import RECORD, RESULT
from toolagent.contracts.calls import ToolCall

CALL = ToolCall(tool_id="echo", params={"message": "漢字"}, idempotency_key="k")
OURS = Claim(RECORD.call_id, "f", "door-a")
THEIRS = Claim(RECORD.call_id, "f", "door-b")


async def test_of_many_who_claim_a_call_one_has_it(database: Database) -> None:
    claims = ClaimTable(database)
    owners = [Claim(RECORD.call_id, "f", f"door-{number}") for number in range(20)]
    taken = await asyncio.gather(*(claims.take(claim, CALL) for claim in owners))
    assert [standing for standing, _ in taken].count("ours") == 1
    assert len({found.owner for _, found in taken}) == 1


async def test_what_was_claimed_is_kept_whole_and_said_again_to_its_owner(database: Database) -> None:
    claims = ClaimTable(database)
    assert await claims.take(OURS, CALL) == ("ours", OURS)
    assert await claims.take(OURS, CALL) == ("ours", OURS)
    kept = await claims.get(OURS.call_id)
    assert kept is not None
    assert kept.call == CALL


async def test_a_call_that_has_ended_is_not_claimed_again(database: Database) -> None:
    calls, claims = CallTable(database), ClaimTable(database)
    await claims.take(OURS, CALL)
    await calls.settle(RECORD, RESULT, (), OURS)
    assert await claims.get(OURS.call_id) is None
    standing, _ = await claims.take(THEIRS, CALL)
    assert standing == "settled"
    assert await claims.get(OURS.call_id) is None


async def test_a_claim_of_who_is_gone_is_taken_over_once(database: Database) -> None:
    claims = ClaimTable(database)
    await claims.take(OURS, CALL)
    (left,) = await claims.abandoned(("door-b",), 10)
    assert left.call == CALL
    assert [await claims.take_over(left, WORKFLOW), await claims.take_over(left, "door-b")] == [True, False]
    assert await claims.abandoned((), 10) == ()


@pytest.mark.promise("never-twice")
async def test_who_was_overtaken_may_neither_send_nor_settle(database: Database) -> None:
    calls, claims = CallTable(database), ClaimTable(database)
    await claims.take(OURS, CALL)
    await claims.take_over(OURS, WORKFLOW)
    assert await calls.mark_sent(RECORD, claim=OURS) == 0
    assert await calls.mark_sent(RECORD) == 1
    with pytest.raises(OvertakenError):
        await calls.settle(RECORD, RESULT, (), OURS)
    unsettled = await calls.get(RECORD.call_id)
    assert unsettled is not None
    assert unsettled.result is None
    assert await calls.settle(RECORD, RESULT, ()) == RESULT
    late = RESULT.model_copy(update={"result": "late"})
    assert await calls.settle(RECORD, late, (), OURS) == RESULT


@pytest.mark.promise("never-twice")
async def test_who_is_overtaken_at_this_very_moment_may_neither_send_nor_settle(database: Database) -> None:
    calls, claims = CallTable(database), ClaimTable(database)
    await claims.take(OURS, CALL)
    async with database.write() as connection:
        await connection.execute(update(rows).values(owner=WORKFLOW, number=OURS.number + 1))
        sending, settling = (
            asyncio.create_task(calls.mark_sent(RECORD, claim=OURS)),
            asyncio.create_task(calls.settle(RECORD, RESULT, (), OURS)),
        )
        await asyncio.wait((sending, settling), timeout=0.5)
    sends, ended = await asyncio.gather(sending, settling, return_exceptions=True)
    assert (sends, type(ended)) == (0, OvertakenError)


@pytest.mark.promise("sent-is-marked-first")
async def test_who_was_overtaken_takes_back_no_mark_of_who_has_the_call(database: Database) -> None:
    calls, claims = CallTable(database), ClaimTable(database)
    await claims.take(OURS, CALL)
    assert await calls.mark_sent(RECORD, claim=OURS) == 1
    await calls.unmark_sent(RECORD.call_id, OURS)
    assert await calls.mark_sent(RECORD, claim=OURS) == 1
    await claims.take_over(OURS, WORKFLOW)
    await calls.unmark_sent(RECORD.call_id, OURS)
    assert await calls.mark_sent(RECORD) == 0


async def test_a_call_that_is_to_end_is_not_sent(database: Database) -> None:
    calls, claims = CallTable(database), ClaimTable(database)
    await claims.take(OURS, CALL)
    assert await claims.cancel(OURS.call_id) == OURS.owner
    assert await calls.mark_sent(RECORD, claim=OURS) == 0
    assert await claims.cancel("call-unknown-1") is None


async def test_a_mark_brings_its_claim_along(database: Database) -> None:
    calls, claims = CallTable(database), ClaimTable(database)
    whole = Claim(RECORD.call_id, "f", "door-a", call=CALL)
    assert await calls.mark_sent(RECORD, claim=whole) == 1
    kept = await claims.get(RECORD.call_id)
    assert kept is not None
    assert kept.call == CALL


async def test_a_claim_that_came_after_the_end_of_its_call_goes_and_no_other_does(database: Database) -> None:
    calls, claims = CallTable(database), ClaimTable(database)
    await calls.settle(RECORD, RESULT, ())
    assert await calls.mark_sent(RECORD, claim=Claim(RECORD.call_id, "f", "door-a", call=CALL)) == 0
    for unsettled in (Claim("call-11111111", "f", "door-a", call=CALL), Claim("call-22222222", "f", "door-a")):
        await claims.take(unsettled, CALL)
        if unsettled.call is not None:
            await calls.mark_sent(RECORD.model_copy(update={"call_id": unsettled.call_id}), claim=unsettled)
    await claims.drop_ended()
    assert [*await claims.held((RECORD.call_id, "call-11111111", "call-22222222"))] == ["call-11111111", "call-22222222"]


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_claim_of_nobody_is_left_to_its_workflow_for_a_while_whatever_the_clock_does(
    database: Database, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    claims = ClaimTable(database)
    await claims.take(Claim(RECORD.call_id, "f", NOBODY), CALL)
    assert [await claims.abandoned((), 10), await claims.held_for(NOBODY, timedelta(seconds=10), 10)] == [(), ()]
    monkeypatch.setattr("engine.store.claims.now", lambda: now() + jump)
    (left,), (held,) = await claims.abandoned((), 10), await claims.held_for(NOBODY, timedelta(seconds=10), 10)
    assert left == held


async def test_a_claim_is_withdrawn_by_its_owner_alone(database: Database) -> None:
    claims = ClaimTable(database)
    await claims.take(OURS, CALL)
    await claims.withdraw(OURS.call_id, "door-b")
    assert await claims.get(OURS.call_id) is not None
    await claims.withdraw(OURS.call_id, "door-a")
    assert await claims.get(OURS.call_id) is None


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"tool_id": "echo", "params": {"message": "hello"}, "of_tomorrow": [1], "caller": {"of_tomorrow": 1}}', {"message": "hello"}),
        ('{"tool_id": "echo"}', {}),
        ('{"tool_id": "echo", "mode": "of tomorrow"}', None),
        ('{"params": {}}', None),
        ("no JSON", None),
    ],
)
async def test_what_a_door_of_another_version_claimed_is_read_as_far_as_it_can_be(
    database: Database, written: str, read: dict[str, JsonValue] | None
) -> None:
    claims = ClaimTable(database)
    await claims.take(OURS, CALL)
    async with database.write() as connection:
        await connection.execute(update(rows).values(call=written))
    found = await claims.get(OURS.call_id)
    (left,) = await claims.abandoned((), 10)
    assert found is not None
    assert found == left
    assert (found.call.params if found.call is not None else None) == read
    assert await claims.take(OURS, CALL) == ("ours", OURS)
    assert await claims.take_over(left, WORKFLOW)
