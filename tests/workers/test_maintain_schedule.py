"""The schedules of `Maintain` and `SyncKnowHub`, on a real server."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.client import Client, ScheduleActionStartWorkflow, ScheduleDescription, ScheduleHandle

from toolagent.client import names
from workers.temporal import maintain_schedule
from workers.temporal.connection import connect
from workers.temporal.maintain_schedule import KnowHubSchedule, MaintainSchedule, kept_schedule

SELDOM = 3600.0


@pytest_asyncio.fixture
async def client(temporal_address: str) -> AsyncGenerator[Client]:
    client = await connect(temporal_address, "default", sandbox=False, patience_s=120)
    yield client
    await handle_of(client).delete()


def handle_of(client: Client) -> ScheduleHandle:
    return client.get_schedule_handle(names.MAINTAIN_SCHEDULE)


async def intervals(client: Client) -> list[timedelta]:
    return [spec.every for spec in (await handle_of(client).describe()).schedule.spec.intervals]


async def test_many_hosts_write_one_schedule_and_the_last_to_start_decides(client: Client) -> None:
    await asyncio.gather(*(MaintainSchedule(client, SELDOM).upsert() for _ in range(5)))
    assert await intervals(client) == [timedelta(hours=1)]
    updated = (await handle_of(client).describe()).info.last_updated_at
    await MaintainSchedule(client, SELDOM).upsert()
    assert (await handle_of(client).describe()).info.last_updated_at == updated, "nothing was to be changed"
    await MaintainSchedule(client, 2 * SELDOM).upsert()
    assert await intervals(client) == [timedelta(hours=2)]
    assert not await MaintainSchedule(client, SELDOM).create(), "who has started already changes nothing"
    assert await intervals(client) == [timedelta(hours=2)]


async def test_a_later_version_changes_the_time_limit_of_a_run(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    await MaintainSchedule(client, SELDOM).upsert()
    monkeypatch.setattr(maintain_schedule, "_LIFE", timedelta(minutes=20))
    await MaintainSchedule(client, SELDOM).upsert()
    action = (await handle_of(client).describe()).schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert action.execution_timeout == timedelta(minutes=20)


async def test_a_schedule_that_somebody_paused_stays_paused(client: Client) -> None:
    await MaintainSchedule(client, SELDOM).upsert()
    await handle_of(client).pause(note="We look for something.")
    await MaintainSchedule(client, 2 * SELDOM).upsert()
    state = (await handle_of(client).describe()).schedule.state
    assert (state.paused, state.note) == (True, "We look for something.")


async def test_a_schedule_that_was_deleted_is_created_again(client: Client) -> None:
    async with kept_schedule(MaintainSchedule(client, SELDOM), look_s=0.1):
        await handle_of(client).delete()
        async with asyncio.timeout(60):
            while await MaintainSchedule(client, SELDOM).create():
                await handle_of(client).delete()
                await asyncio.sleep(0.3)


async def test_a_run_that_is_not_over_keeps_later_ones_from_starting(client: Client) -> None:
    """No worker serves the workflows here."""
    await MaintainSchedule(client, 1.0).upsert()

    async def described() -> ScheduleDescription:
        return await handle_of(client).describe()

    async with asyncio.timeout(60):
        while (await described()).info.num_actions_skipped_overlap < 2:  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.2)
    info = (await described()).info
    assert info.num_actions == 1
    await handle_of(client).pause()
    # Services of other tests may have left a run behind.
    query = f"WorkflowType = '{names.MAINTAIN}' AND ExecutionStatus = 'Running' AND StartTime >= '{info.created_at.isoformat()}'"
    running = [found.id async for found in client.list_workflows(query)]
    assert len(running) == 1
    await client.get_workflow_handle(running[0]).terminate()


async def test_triggers_start_one_run_at_a_time(client: Client) -> None:
    """No worker serves the workflows here."""
    await MaintainSchedule(client, SELDOM).upsert()
    schedule, handle = KnowHubSchedule(client, SELDOM), client.get_schedule_handle(names.KNOWHUB_SCHEDULE)
    await schedule.upsert()
    try:
        for _ in range(3):
            await schedule.trigger()
        async with asyncio.timeout(60):
            while not (info := (await handle.describe()).info).running_actions:  # noqa: ASYNC110 - it happens on the server
                await asyncio.sleep(0.2)
        assert info.num_actions == 1
    finally:
        await handle.delete()
