"""The host of a task, while hosts come and go."""

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import update
from structlog.testing import capture_logs
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.follow_task import FollowTask
from engine.store import tables
from engine.store.clock import database_time
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.tasks.states import TaskStates
from tests.store.making import BUILD, task
from toolagent.client import names
from toolagent.contracts.making import MakeRequest, MakeTask
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.making_steps import EndStep, HostStep, Slot

TASK = "create_00000001"
REQUEST = MakeRequest(task_id=TASK, spec=BUILD, description=task().description)


async def followed(database: Database, *hosts: str) -> tuple[FollowTask, TaskTable]:
    """The task as the host `here` follows it, beside other hosts."""
    table, tasks = HostTable(database, 10.0), TaskTable(database)
    for host in ("here", *hosts):
        await table.claim(HostClaim(host, f"{host}-1", host, {}))
    return FollowTask(TaskStates(tasks, table, "here")), tasks


async def dies(database: Database, *hosts: str) -> None:
    async with database.write() as connection:
        long_ago = database_time(-timedelta(minutes=1))
        await connection.execute(update(tables.hosts).where(tables.hosts.c.host.in_(hosts)).values(seen_at=long_ago))


async def test_a_task_is_on_the_host_that_gave_it_leave_to_begin(database: Database) -> None:
    follow, tasks = await followed(database)
    for _ in range(2):
        assert await ActivityEnvironment().run(follow.await_slot, REQUEST) == Slot(host="here")
    assert (await tasks.on_host("here"), await tasks.on_host("there")) == ({TASK}, frozenset())
    await tasks.settle(TASK, TaskState.FAILED)
    assert await tasks.on_host("here") == frozenset()


class Counting(TaskTable):
    """Counts how often a task is written."""

    created = 0

    async def create(self, task: MakeTask) -> MakeTask:
        self.created += 1
        return await super().create(task)


def at_attempt(number: int) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=number)
    return environment


async def test_a_task_that_waits_is_written_down_once_and_told_when_to_ask_again(database: Database) -> None:
    _, others = await followed(database)
    tasks = Counting(database)
    follow = FollowTask(TaskStates(tasks, HostTable(database, 10.0), "here", most=1))
    await others.create(task(2))
    assert await others.claim_slot(task(2).task_id, 1)
    for number in (1, 2, 3):
        with pytest.raises(ApplicationError) as waits:
            await at_attempt(number).run(follow.await_slot, REQUEST)
        assert (waits.value.type, waits.value.next_retry_delay) == (names.NO_SLOT, timedelta(seconds=0.5))
    assert tasks.created == 1
    await others.settle(task(2).task_id, TaskState.CANCELLED)
    assert await at_attempt(4).run(follow.await_slot, REQUEST) == Slot(host="here")


async def test_a_first_attempt_that_came_to_nothing_is_made_up_for(database: Database) -> None:
    follow, tasks = await followed(database)
    assert await at_attempt(2).run(follow.await_slot, REQUEST) == Slot(host="here")
    assert await tasks.on_host("here") == {TASK}


async def test_a_task_moves_only_from_a_host_that_is_dead_to_one_that_is_alive(database: Database) -> None:
    follow, tasks = await followed(database, "there", "elsewhere")
    await tasks.create(task())
    await tasks.claim_slot(TASK, 2, "there")
    asked = HostStep(task_id=TASK, host="there")
    assert (await ActivityEnvironment().run(follow.find_host, asked)).host == "there"
    await dies(database, "there")
    stays = asked.model_copy(update={"moves": False})
    assert (await ActivityEnvironment().run(follow.find_host, stays)).host == "here"
    assert await tasks.on_host("there") == {TASK}
    for _ in range(2):
        assert await ActivityEnvironment().run(follow.find_host, asked) == Slot(host="here")
    assert (await tasks.on_host("here"), await tasks.on_host("there")) == ({TASK}, frozenset())
    said = [note.text for note in await TaskNoteTable(database).after(TASK) if "is away" in note.text]
    assert len(said) == 1
    await dies(database, "here", "elsewhere")
    assert (await ActivityEnvironment().run(follow.find_host, asked)).host == "there", "nobody is alive: it waits"


async def test_an_end_under_an_id_that_is_another_requests_changes_nothing(database: Database) -> None:
    follow, tasks = await followed(database)
    other = await tasks.create(task().model_copy(update={"key": "other"}))
    await ActivityEnvironment().run(follow.end_task, EndStep(request=REQUEST, status=TaskState.FAILED, reason="No."))
    assert await tasks.get(TASK) == other


async def test_the_log_says_in_a_line_each_that_a_task_begins_and_how_it_ends(database: Database) -> None:
    follow, _ = await followed(database)
    with capture_logs() as said:
        await ActivityEnvironment().run(follow.await_slot, REQUEST)
        await ActivityEnvironment().run(follow.end_task, EndStep(request=REQUEST, status=TaskState.FAILED, reason="No\nmodel."))
    began, ended = [line for line in said if line.get("task_id") == TASK]
    assert (began["event"], began["tool_id"], began["host"]) == ("task_began", "word_counter", "here")
    assert (ended["event"], ended["status"], ended["reason"]) == ("task_ended", "failed", "No model.")


async def test_a_task_does_not_begin_on_a_host_that_drains_and_moves_to_none(database: Database) -> None:
    _, tasks = await followed(database, "there", "yonder")
    hosts = HostTable(database, 10.0)
    follow = FollowTask(TaskStates(tasks, hosts, "here", is_open=lambda: False))
    with pytest.raises(ApplicationError) as waits:
        await ActivityEnvironment().run(follow.await_slot, REQUEST)
    assert waits.value.type == names.NO_SLOT
    for host in ("here", "there"):
        await hosts.drain(host)
    assert await ActivityEnvironment().run(follow.find_host, HostStep(task_id=TASK, host="gone", moves=False)) == Slot(host="yonder")
