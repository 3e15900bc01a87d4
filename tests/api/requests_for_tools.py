"""A request for a tool."""

from pydantic import JsonValue

from tests.api.conftest import House
from toolagent.contracts.making import MakeTask

BUILD: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "word_counter", "runtime": "uv"}
ASKED: dict[str, JsonValue] = {"description": "Count words.", "task_spec": BUILD}


async def made(house: House) -> MakeTask:
    """The task of a request, as it is in the store."""
    task_id = (await house.http.post("/create_tool", json=ASKED)).json()["task_id"]
    task = await house.tasks.get(task_id)
    assert task is not None
    return task
