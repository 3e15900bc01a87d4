"""A batch survives the death of the service."""

from pathlib import Path

import pytest

from tests.system.conftest import MakeService
from tests.system.effects import count_of, wait_for_effect
from tests.system.waiting import wait_until
from toolagent.client.http import ToolAgentHttp
from toolagent.contracts.batches import BatchResult
from toolagent.contracts.http import Task
from toolagent.contracts.tasks import TaskState

pytestmark = pytest.mark.timeout(300)


def test_a_batch_goes_on_after_a_kill_and_ends(make_service: MakeService, effects: Path) -> None:
    service, go_on = make_service(), effects.with_name("go on")
    service.start()
    slow = {"effects": str(effects), "until": str(go_on), "line": "again"}
    body = {
        "calls": [
            {"tool_id": "calculator", "params": {"expression": "6 * 7"}},
            {"tool_id": "again", "params": slow},
            {"tool_id": "echo", "params": {"message": "after"}},
        ],
        "ordered": True,
        "idempotency_key": "killed",
    }
    batch_id = service.http.post("/run_tools", json=body | {"mode": "async"}).json()["task_id"]
    wait_for_effect(effects, "again")
    with ToolAgentHttp(service.api_url) as http:
        wait_until(lambda: http.task(batch_id).progress == "1 of 3", "the first call has ended")
    service.kill()
    go_on.touch()
    service.start()

    def ended() -> Task | None:
        task = Task.model_validate_json(service.http.get(f"/tasks/{batch_id}").content)
        return task if task.ended_at else None

    task = wait_until(ended, "the batch has ended", 120)
    assert (task.status, task.progress) == (TaskState.COMPLETED, "3 of 3")
    result = BatchResult.model_validate_json(service.http.post("/run_tools", json=body).content)
    assert result.batch_id == batch_id
    assert [one.status for one in result.results] == ["success"] * 3
    assert result.results[2].result == {"message": "after"}
    assert count_of(effects, "again") == 2, "the killed attempt and the one that was made again; no third by asking again"
    assert service.stop() == 0
    service.wait_until_nothing_is_left()
