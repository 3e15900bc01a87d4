"""Tasks that make tools, asked for over HTTP at a running service, and what is to be left of them."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from itertools import count
from pathlib import Path

from pydantic import JsonValue

from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.making_views import MakingTask
from toolagent.core.task_requests import read_spec, request_key, task_id_for
from toolagent.core.withheld import withheld

__all__ = ["SCENARIOS", "WORD_COUNTER", "asked", "ended", "key_that_withholds", "left_of", "task"]

SCENARIOS = Path(__file__).with_name("scenarios")

WORD_COUNTER: Mapping[str, JsonValue] = {
    "type": "build_tool",
    "tool_name": "word_counter",
    "runtime": "uv",
    "description": "Count the words of a text, and name the most common one.",
    "examples": [
        {"input": {"text": "a b a"}, "expected_output": {"words": 3}},
        {"input": {"text": "one two"}, "expected_output": {"words": 2}},
        {"input": {"text": "withheld secret words"}, "expected_output": {"words": 3}},
    ],
}

_ENDED_S = 300.0


def key_that_withholds(spec: Mapping[str, JsonValue], place: int) -> str:
    """An idempotency key whose task is shown all examples but the one at this place."""
    read = read_spec(spec)
    keys = (f"key-{number}" for number in count())
    return next(key for key in keys if withheld(task_id_for(read, request_key(None, key), 0), read.examples) == frozenset((place,)))


def asked(service: ServiceProcess, spec: Mapping[str, JsonValue], key: str | None = None) -> str:
    """The id of a task that was just asked for."""
    headers = {"Idempotency-Key": key} if key else {}
    answer = service.http.post("/create_tool", json={"description": "for a test", "task_spec": dict(spec)}, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()["task_id"]


def task(service: ServiceProcess, task_id: str) -> MakingTask:
    return MakingTask.model_validate_json(service.http.get(f"/tasks/{task_id}").raise_for_status().content)


def ended(service: ServiceProcess, task_id: str) -> MakingTask:
    return wait_until(lambda: one if (one := task(service, task_id)).ended_at else None, f"{task_id} has ended", _ENDED_S)


def left_of(service: ServiceProcess, task_id: str, tool_id: str) -> dict[str, object]:
    """Whatever of it is still there, but for the task and its log; empty when nothing is."""
    state = service.state
    found: dict[str, object] = {
        name: sorted(path.name for path in (state / name).glob("*") if not path.name.startswith(".")) for name in ("making", "trials")
    }
    found["homes"] = sorted(path.name for path in (state / "tools").glob(f"{tool_id}*"))
    with closing(sqlite3.connect(f"file:{state / 'tool-agent.db'}?mode=ro", uri=True)) as database:
        for table in ("tools", "tool_versions", "sources", "routes", "evidence"):
            found[table] = database.execute(f"SELECT count(*) FROM {table} WHERE tool_id LIKE ?", (f"{tool_id}%",)).fetchone()[0]  # noqa: S608
    found["containers"] = [command for command in service.leftovers().values() if task_id in command]
    return {name: value for name, value in found.items() if value}
