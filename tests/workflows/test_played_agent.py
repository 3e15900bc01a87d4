"""An agent that gets guidance when its task is cancelled: with a simulated Temporal that delivers it."""

import asyncio
from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

from toolagent_service.contracts.agent import AgentRequest
from toolagent_service.contracts.making_steps import Slot
from workflows.making.agent_runs import AgentRuns

TASK_ID = "create_00000001"


@dataclass
class Agent:
    """Ends when it is told to, and only for those that wait for it."""

    told: list[str] = field(default_factory=list[str])
    id: str = "create_00000001/coding"

    async def signal(self, *_given: object) -> None:
        self.told.append("signal")
        raise asyncio.CancelledError

    async def cancel(self) -> None:
        self.told.append("cancel")

    def __await__(self) -> Generator[None]:
        self.told.append("end")
        raise asyncio.CancelledError
        yield


@dataclass
class Played:
    agent: Agent = field(default_factory=Agent)

    def cancellation_reason(self) -> str | None:
        return "enough" if self.agent.told else None

    def get_external_workflow_handle(self, workflow_id: str) -> Agent:
        assert workflow_id == self.agent.id
        return self.agent

    async def start_child_workflow(self, *_given: object, **_options: object) -> Agent:
        return self.agent


async def test_a_cancellation_that_breaks_a_remark_off_ends_the_agent_before_the_task_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()
    for module in ("making.agent_runs", "cancelling"):
        monkeypatch.setattr(f"workflows.{module}.workflow", played)
    runs = AgentRuns()
    await runs.hear([{"id": "said", "text": "Faster."}])
    with pytest.raises(asyncio.CancelledError):
        await runs.result(AgentRequest(conversation_id=TASK_ID, prompt="coding"), Slot(host="here"))
    assert played.agent.told == ["signal", "cancel", "end"]
