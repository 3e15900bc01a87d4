"""Tasks that make tools, begun over HTTP at a running service, and their leftovers."""

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import yaml
from pydantic import JsonValue

from engine.roles.prices import Prices
from tests.system.service_process import ROOT, ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.versions import ToolVersions
from toolagent.core.task_requests import read_spec, request_key, task_id_for
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import Conversation, Scenario, TurnUsage, load_scenario
from toolagent_service.agents.model_cost import cost_of
from toolagent_service.contracts.model import Usage
from toolagent_service.making.withheld import withheld

__all__ = [
    "SCENARIOS",
    "asked",
    "conversation",
    "cost_of_turns",
    "ended",
    "evidence",
    "key_that_withholds",
    "left_of",
    "rows",
    "serving",
    "task",
    "word_counter",
]

SCENARIOS = Path(__file__).with_name("scenarios")

_ENDED_S = 300.0
_MODEL = "claude-sonnet-5"
_READ, _WRITTEN = 3_000, 200
"""Tokens of each turn."""


def word_counter(tool_id: str) -> Mapping[str, JsonValue]:
    """A request for any tool. No shipped tool gives this result, because existing tools are tried first."""
    return {
        "type": "build_tool",
        "tool_name": tool_id,
        "runtime": "uv",
        "description": "Count the words of a text, and name the most common one.",
        "examples": [
            {"input": {"text": "a b a"}, "expected_output": {"words": 3, "most_common": "a"}},
            {"input": {"text": "one two one"}, "expected_output": {"words": 3, "most_common": "one"}},
            {"input": {"text": "withheld secret words"}, "expected_output": {"words": 3}},
        ],
    }


def conversation(name: str, tool_id: str) -> Conversation:
    """The scenario of that name, for this tool instead of `word_counter`."""
    text = (SCENARIOS / f"{name}.yaml").read_text("utf-8").replace("word_counter", tool_id)
    scenario = Scenario.model_validate(yaml.safe_load(text))
    usage = TurnUsage(input_tokens=_READ, output_tokens=_WRITTEN)
    turns = tuple(turn.model_copy(update={"usage": usage}) for turn in scenario.turns)
    return Conversation(name=tool_id, when=f"Make the tool `{tool_id}`", expect=scenario.expect, turns=turns)


def cost_of_turns(turns: int) -> float:
    """The cost of this number of turns, each paid once, in USD."""
    price = Prices.read(ROOT / "data" / "prices.json").of(_MODEL)
    assert price is not None
    return round(turns * cost_of(price, Usage(input_tokens=_READ, output_tokens=_WRITTEN)), 9)


@contextmanager
def serving(folder: Path, data: Path, scenario: str | Scenario, **settings: str) -> Generator[tuple[ServiceProcess, ModelServer]]:
    """A service whose model follows the scenario."""
    said = load_scenario(SCENARIOS / f"{scenario}.yaml") if isinstance(scenario, str) else scenario
    with ModelServer(said, strict=False) as model:
        given = {
            "MODEL": _MODEL,
            "MODEL_API_KEY": "of-the-tests",
            "MODEL_BASE_URL": model.url,
            "REPO_SCHEMES": "https,file",
            **settings,
        }
        service = ServiceProcess(folder / "service", data, **given)
        service.start()
        try:
            yield service, model
        finally:
            service.end()
            service.wait_until_nothing_is_left()


def key_that_withholds(spec: Mapping[str, JsonValue], place: int) -> str:
    """An idempotency key with which the task withholds the example at this place only."""
    read = read_spec(spec)
    keys = (f"{spec['tool_name']}-{number}" for number in count())
    return next(key for key in keys if withheld(task_id_for(read, request_key(None, key), 0), read.examples) == frozenset((place,)))


def asked(service: ServiceProcess, spec: Mapping[str, JsonValue], key: str | None = None) -> str:
    """The id of a new task."""
    headers = {"Idempotency-Key": key} if key else {}
    answer = service.http.post("/create_tool", json={"description": "for a test", "task_spec": dict(spec)}, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()["task_id"]


def task(service: ServiceProcess, task_id: str) -> MakingTask:
    return MakingTask.model_validate_json(service.http.get(f"/tasks/{task_id}").raise_for_status().content)


def ended(service: ServiceProcess, task_id: str) -> MakingTask:
    return wait_until(lambda: one if (one := task(service, task_id)).ended_at else None, f"{task_id} has ended", _ENDED_S)


def evidence(service: ServiceProcess, tool_id: str) -> ToolVersions:
    return ToolVersions.model_validate_json(service.http.get(f"/tools/{tool_id}/versions").raise_for_status().content)


def rows(service: ServiceProcess, query: str, *values: str) -> Sequence[tuple[object, ...]]:
    """Rows of the service's database, also while the service is stopped."""
    with closing(sqlite3.connect(f"file:{service.state / 'tool-agent.db'}?mode=ro", uri=True)) as database:
        return database.execute(query, values).fetchall()


def left_of(service: ServiceProcess, task_id: str, tool_id: str) -> dict[str, object]:
    """What is left of the task besides its row and its log; empty if nothing is."""
    state = service.state
    found: dict[str, object] = {
        name: sorted(path.name for path in (state / name).glob("*") if not path.name.startswith(".")) for name in ("making", "trials")
    }
    found["environments"] = [path.stem for path in service.environments.glob("*.task") if path.read_text() == task_id]
    for name in ("tools", "calls"):
        found[f"{name}/"] = sorted(path.name for path in (state / name).glob(f"{tool_id}*"))
    for table in ("tools", "tool_versions", "sources", "routes", "evidence"):
        (found[table],) = rows(service, f"SELECT count(*) FROM {table} WHERE tool_id LIKE ?", f"{tool_id}%")[0]  # noqa: S608
    (found["files held"],) = rows(service, "SELECT count(*) FROM file_references WHERE holder = ?", f"candidates:{task_id}")[0]
    found["processes"] = [command for command in service.leftovers().values() if task_id in command]
    return {name: value for name, value in found.items() if value}
