"""The service at a glance."""

from tests.api.conftest import COMPRESS, House
from tests.api.requests_for_tools import made
from toolagent.contracts.tasks import TaskState


async def test_the_status_has_the_specified_shape(stocked: House) -> None:
    waiting, running, ended = [await made(stocked) for _ in range(3)]
    await stocked.tasks.claim_slot(running.task_id, 9)
    await stocked.tasks.settle(ended.task_id, TaskState.FAILED, "No.")
    await stocked.registry.deactivate(COMPRESS.tool_id, COMPRESS.version)
    said = (await stocked.http.get("/system/status")).json()
    recent = said["coding_agent"].pop("recent_tasks")
    assert said == {
        "tools": {"total": 3, "active": 2},
        "coding_agent": {"running_count": 1, "running_task_ids": [running.task_id], "queued_count": 1},
        "service_agent": {"total_windows": 0, "im_connected": False, "windows": []},
    }
    states = [(ended, "failed"), (running, "running"), (waiting, "pending")]
    assert [(one["task_id"], one["status"]) for one in recent] == [(task.task_id, status) for task, status in states]
    assert recent[0]["task_spec"] == ended.spec.model_dump(mode="json")


async def test_a_task_is_described_by_its_specification_where_only_that_does(stocked: House) -> None:
    spec = {"type": "build_tool", "tool_name": "slugs", "description": "Make slugs."}
    for description, told in (("", "Make slugs."), ("For the blog.", "For the blog.")):
        key = {"Idempotency-Key": f"k{description}"}
        body = {"description": description, "task_spec": spec}
        first, again = [(await stocked.http.post("/create_tool", json=body, headers=key)).json() for _ in range(2)]
        assert first["task_id"] == again["task_id"]
        assert (await stocked.http.get(f"/tasks/{first['task_id']}")).json()["description"] == told
