"""Which tasks run, and which wait."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import update

from engine.store import tables
from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.tasks import TaskTable
from tests.store.making import task
from toolagent.contracts.tasks import TaskState


async def waiting(tasks: TaskTable, count: int) -> list[str]:
    """Tasks that were created one after the other."""
    moment = now()
    made = [task(number).model_copy(update={"created_at": moment + timedelta(microseconds=number)}) for number in range(1, count + 1)]
    return [(await tasks.create(one)).task_id for one in made]


@pytest.mark.promise("slots-in-order")
async def test_two_run_and_the_others_follow_in_the_order_of_their_creation(database: Database) -> None:
    tasks = TaskTable(database)
    one, two, three, four = await waiting(tasks, 4)
    assert [await tasks.claim_slot(each, 2) for each in (one, two, four, three)] == [True, True, False, False]
    assert [await tasks.claim_slot(each, 2) for each in (one, two)] == [True, True], "asking again gives the same answer"
    await tasks.settle(one, TaskState.FAILED, "No.")
    assert [await tasks.claim_slot(each, 2) for each in (four, three, four)] == [False, True, False]
    await tasks.settle(two, TaskState.CANCELLED)
    assert await tasks.claim_slot(four, 2) is True


async def test_a_task_with_a_slot_runs(database: Database) -> None:
    tasks = TaskTable(database)
    [one] = await waiting(tasks, 1)
    await tasks.claim_slot(one, 1)
    begun = await tasks.get(one)
    assert begun is not None
    assert (begun.status, begun.started_at is not None) == (TaskState.RUNNING, True)
    await tasks.claim_slot(one, 1)
    assert await tasks.get(one) == begun


@pytest.mark.promise("slots-in-order")
@pytest.mark.parametrize("most", [1, 3])
async def test_of_many_that_ask_at_once_no_more_than_that_run(database: Database, most: int) -> None:
    tasks = TaskTable(database)
    ids = await waiting(tasks, 8)
    for _ in range(2):
        answers = await asyncio.gather(*(tasks.claim_slot(each, most) for each in ids))
        assert [each for each, answer in zip(ids, answers, strict=True) if answer] == ids[:most]


async def test_nobody_waits_behind_a_task_that_asks_no_more(database: Database) -> None:
    tasks = TaskTable(database)
    one, two, three = await waiting(tasks, 3)
    assert [await tasks.claim_slot(each, 1) for each in (one, two, three)] == [True, False, False]
    await tasks.settle(one, TaskState.CANCELLED)
    async with database.write() as connection:
        long_ago = timestamp(now() - timedelta(minutes=2))
        await connection.execute(update(tables.tasks).where(tables.tasks.c.task_id == two).values(asked_at=long_ago))
    assert await tasks.claim_slot(three, 1) is True


@pytest.mark.promise("slots-in-order")
async def test_who_waits_asks_the_less_often_the_more_wait_before_it_and_never_so_seldom_that_it_is_passed_over(database: Database) -> None:
    tasks = TaskTable(database)
    ids = await waiting(tasks, 100)
    for each in (ids[0], ids[1], ids[-1]):
        await tasks.claim_slot(each, 2)
    pauses = [(await tasks.pause(each)).total_seconds() for each in (*ids[2:6], ids[-1])]
    assert pauses == [0.5, 1.0, 1.5, 2.0, 30.0]
    await tasks.settle(ids[0], TaskState.FAILED)
    await tasks.settle(ids[2], TaskState.CANCELLED)
    assert (await tasks.pause(ids[3])).total_seconds() == 0.5
    assert await tasks.claim_slot(ids[3], 2) is True
