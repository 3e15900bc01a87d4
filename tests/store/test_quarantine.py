"""The table of inputs that end a tool's process."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue
from sqlalchemy import select

from engine.store import quarantine
from engine.store.calls import CallTable
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.quarantine import QuarantineTable, input_of
from engine.store.repair_tables import poisonous_inputs
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import CallRecord

POISON: dict[str, JsonValue] = {"numbers": [0]}
ENDED = "It ended with code 3."


def record(number: int, params: dict[str, JsonValue] | None = None, version: str = "1.0.0") -> CallRecord:
    return CallRecord(
        call_id=f"call-{number:08}",
        tool_id="t",
        version=version,
        fingerprint=input_of(POISON if params is None else params),
        workflow_id="w",
        run_id="r",
        params=POISON if params is None else params,
        created_at=datetime.now(UTC),
    )


async def test_the_second_crash_of_an_input_quarantines_it_and_the_same_call_counts_once(database: Database) -> None:
    table = QuarantineTable(database)
    assert not await table.note_crash(record(1), ENDED)
    assert not await table.note_crash(record(1), ENDED)
    assert not await table.note_crash(record(2, {"numbers": [1]}), ENDED)
    assert not await table.note_crash(record(3, version="2.0.0"), ENDED)
    assert await table.note_crash(record(4), ENDED)
    (found,) = await table.of_tool("t")
    assert (found.version, found.params, found.crashes, found.call_ids) == ("1.0.0", POISON, 2, ("call-00000001", "call-00000004"))
    assert await table.all_inputs() == (("t", "1.0.0", input_of(POISON)),)
    assert await table.of_tool("t", "2.0.0") == ()


async def test_of_a_version_that_ends_whatever_it_is_asked_no_more_than_so_many_inputs_are_kept(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "_MOST_NOTED", 3)
    table = QuarantineTable(database)
    for number in range(5):
        await table.note_crash(record(number, {"numbers": [number]}), ENDED)
    assert not await table.note_crash(record(9, {"numbers": [4]}), ENDED)
    assert await table.note_crash(record(9, {"numbers": [2]}), ENDED)
    assert await table.lift("t") == 1
    async with database.read() as connection:
        assert (await connection.execute(select(poisonous_inputs.c.input))).all() == []
    assert not await table.note_crash(record(10, {"numbers": [4]}), ENDED)
    assert await table.note_crash(record(11, {"numbers": [4]}), ENDED)


async def test_a_call_that_asked_again_after_each_crash_is_enough(database: Database) -> None:
    table, calls = QuarantineTable(database), CallTable(database)
    for _ in range(3):
        await calls.mark_sent(record(1), again=True)
    assert await table.note_crash(record(1), ENDED)
    assert (await table.of_tool("t"))[0].crashes == 3


async def test_a_call_that_had_others_beside_it_counts_once_however_often_it_was_sent(database: Database) -> None:
    """The call that ends the process is repeated together with it."""
    table, calls = QuarantineTable(database), CallTable(database)
    for _ in range(3):
        await calls.mark_sent(record(1), again=True)
    assert not await table.note_crash(record(1), ENDED, alone=False)
    assert await table.note_crash(record(2), ENDED, alone=False)


async def test_an_input_that_is_answered_in_between_was_not_to_blame(database: Database) -> None:
    """Another call had ended the process that both were in."""
    table, calls = QuarantineTable(database), CallTable(database)
    assert not await table.note_crash(record(1), ENDED)
    good = record(2)
    await calls.settle(good, ToolResult(status="success", result=1, call_id=good.call_id, tool_id="t"), ())
    assert not await table.note_crash(record(3), ENDED)
    assert await table.note_crash(record(4), ENDED)


async def test_it_is_lifted_by_hand_and_calls_see_each_change(database: Database) -> None:
    table, state = QuarantineTable(database), CatalogState(database)
    before = await state.number()
    await table.note_crash(record(1), ENDED)
    assert await state.number() == before, "nothing is refused yet"
    await table.note_crash(record(2), ENDED)
    assert await state.number() > before
    before = await state.number()
    assert await table.lift("t", "0" * 64) == 0
    assert await table.lift("t") == 1
    assert await state.number() > before
    assert await table.all_inputs() == ()
    assert not await table.note_crash(record(3), ENDED), "it is counted anew"


async def test_of_a_version_that_always_crashes_no_more_than_so_many_inputs_are_kept_apart(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "_MOST", 3)
    table = QuarantineTable(database)
    for number in range(4):
        for call in (2 * number, 2 * number + 1):
            await table.note_crash(record(call, {"numbers": [number]}), ENDED)
    assert len(await table.of_tool("t")) == 3
