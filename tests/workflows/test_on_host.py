"""A step that no worker takes, and a cancellation that its failure swallows: with a simulated Temporal."""

import asyncio
from dataclasses import dataclass

import pytest
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType

from toolagent.contracts.task_specs import BuildTool
from toolagent_service import stubs
from toolagent_service.contracts.making_steps import HostStep, Slot, TaskStep
from workflows import making_options as options
from workflows.lost_hosts import on_host

HOST = Slot(host="here")
STEP = TaskStep(task_id="create_00000001", spec=BuildTool(tool_name="reckoner", description="Reckon."))


@dataclass
class Played:
    """No worker takes the step the first time, and the host is alive. The `reason` to cancel exists from then on, at the latest."""

    reason: str | None = None
    tries: int = 0

    def cancellation_reason(self) -> str | None:
        return self.reason

    async def execute_activity(self, *_given: object, **_options: object) -> None:
        self.tries += 1
        if self.tries == 1:
            self.reason = "enough"
            raise _not_taken()

    async def execute_local_activity(self, *_given: object, **_options: object) -> Slot:
        return HOST


def _not_taken() -> ActivityError:
    error = ActivityError(
        "Activity task timed out",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type="clear",
        activity_id="1",
        retry_state=None,
    )
    error.__cause__ = TimeoutError("", type=TimeoutType.SCHEDULE_TO_START, last_heartbeat_details=())
    return error


async def _done(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.lost_hosts.workflow", played)
    seek = HostStep(task_id=STEP.task_id, host=HOST.host)
    await on_host(stubs.clear_task, STEP, lambda: options.making(HOST, "clear up"), seek)


async def test_a_cancellation_that_came_while_nobody_took_the_step_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()
    with pytest.raises(asyncio.CancelledError):
        await _done(played, monkeypatch)
    assert played.tries == 1


async def test_what_was_begun_in_spite_of_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    await _done(played := Played(reason="enough"), monkeypatch)
    assert played.tries == 2
