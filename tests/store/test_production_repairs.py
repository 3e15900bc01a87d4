"""The table of repairs that failing calls have opened."""

import asyncio
from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.production_repairs import NewRepair, OpenRepair, ProductionRepairs
from engine.store.repair_tables import production_repairs
from engine.store.tasks import TaskTable
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.task_specs import RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.repairs import Meanwhile
from toolagent_service.making.task_views import begun

AT = datetime(2026, 11, 24, tzinfo=UTC)


def new(attempt: int = 1, *, is_alert: bool = False) -> NewRepair:
    request = MakeRequest(task_id=f"repair_{attempt:08x}", spec=RepairTool(tool_id="t", error="It fails."))
    event = Event(event_id=f"repair:{attempt}", event_type=EventType.HEALTH_ALERT, tool_id="t", at=AT, details={"tool_id": "t"})
    return NewRepair("t", "1.0.0", attempt, "It fails.", event, Meanwhile.REFUSE, "0.9.0", None if is_alert else request)


async def test_of_many_hosts_one_opens_a_repair_and_says_so_once(database: Database) -> None:
    repairs = ProductionRepairs(database)
    assert sum(await asyncio.gather(*(repairs.open(new()) for _ in range(5)))) == 1
    assert not await repairs.open(new(2)), "one is under way"
    assert await repairs.under_way() == (OpenRepair("t", "1.0.0", "repair_00000001", Meanwhile.REFUSE, "0.9.0"),)
    assert [event.event_id for event in await EventTable(database).of_tool("t")] == ["repair:1"]
    history = await repairs.history("t")
    assert [one.ended_at for one in history.earlier] == [None]
    assert (await repairs.attempts("t", "1.0.0"), await repairs.attempts("t", "2.0.0")) == (1, 0)


async def test_it_is_started_until_its_task_is_known_and_ends_with_it(database: Database) -> None:
    repairs, tasks = ProductionRepairs(database), TaskTable(database)
    assert await repairs.open(new())
    (request,) = await repairs.unstarted()
    assert request == new().request
    await tasks.create(begun(request, AT))
    assert await repairs.unstarted() == ()
    await tasks.settle(request.task_id, TaskState.FAILED, "It could not be mended.")
    assert await repairs.under_way() == ()
    history = await repairs.history("t")
    assert [one.ended_at is not None and one.is_repair for one in history.earlier] == [True]
    assert await repairs.open(new(2)), "another attempt has an id of its own"


async def test_an_alert_is_a_repair_that_has_ended_and_that_nobody_starts(database: Database) -> None:
    repairs = ProductionRepairs(database)
    assert await repairs.open(new(is_alert=True))
    assert (await repairs.under_way(), await repairs.unstarted()) == ((), ())
    (told,) = (await repairs.history("t")).earlier
    assert (told.is_repair, told.opened_at) == (False, told.ended_at)
    assert not await repairs.open(new(is_alert=True)), "of this attempt there is one"


async def test_times_of_the_future_become_now(database: Database) -> None:
    repairs = ProductionRepairs(database)
    assert await repairs.open(new(is_alert=True))
    far = "2126-01-01T00:00:00.000000+00:00"
    async with database.write() as connection:
        await connection.execute(update(production_repairs).values(opened_at=far, ended_at=far))
    history = await repairs.history("t")
    (told,) = history.earlier
    assert told.ended_at is not None
    assert abs(history.now - told.opened_at) < timedelta(minutes=1)
    assert abs(history.now - told.ended_at) < timedelta(minutes=1)


async def test_a_repair_whose_id_is_that_of_a_task_of_before_holds_nobody(database: Database) -> None:
    """A database was restored, or a tool was removed and added again."""
    repairs, tasks, request = ProductionRepairs(database), TaskTable(database), new().request
    assert request is not None
    await tasks.create(begun(request, AT))
    await tasks.settle(request.task_id, TaskState.FAILED)
    assert await repairs.open(new())
    await repairs.give_up()
    assert await repairs.under_way() == ()


async def test_a_repair_whose_task_nobody_knows_is_given_up_after_an_hour_and_one_whose_id_is_taken_at_once(database: Database) -> None:
    repairs = ProductionRepairs(database)
    assert await repairs.open(new())
    await repairs.give_up()
    assert len(await repairs.under_way()) == 1
    async with database.write() as connection:
        await connection.execute(update(production_repairs).values(opened_at=(datetime.now(UTC) - timedelta(hours=2)).isoformat()))
    await repairs.give_up()
    assert await repairs.under_way() == ()
    assert await repairs.open(new(2))
    await repairs.give_up("repair_00000002")
    assert await repairs.under_way() == ()
