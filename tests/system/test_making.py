"""What issue 5 is to show, over HTTP at a running service: repositories and descriptions become tools, or nothing is left of them."""

import random
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from tests.making.inspection.git import repository
from tests.system.catalog import make_catalog
from tests.system.killed_builds import cancelled_build, killed_build
from tests.system.making_tasks import asked, conversation, ended, evidence, key_that_withholds, left_of, rows, serving, word_counter
from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.making import Stage
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import Scenario

pytestmark = pytest.mark.timeout(400)

_TURN_S = 0.2
"""So that something can happen in the middle of a turn."""

_APP = """\
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI(title="Numbers")


class Numbers(BaseModel):
    numbers: list[int]


class Total(BaseModel):
    total: int


@app.post("/total", operation_id="total")
def total(given: Numbers) -> Total:
    return Total(total=sum(given.numbers))


@app.get("/double/{number}", operation_id="double")
def double(number: int) -> Total:
    return Total(total=2 * number)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_catalog(tmp_path_factory.mktemp("making"))


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[ServiceProcess, ModelServer]]:
    """One service for all tasks that a model works on, and its model; each test has tools of its own."""
    tools = ("word_counter", "killed", "cancelled_1", "cancelled_2", "cancelled_3")
    conversations = (*(conversation("word_counter", tool) for tool in tools), conversation("looked_up", "looked_up"))
    scenario = Scenario(seconds=_TURN_S, conversations=conversations)
    with serving(tmp_path_factory.mktemp("made"), data, scenario, CODING_ROUNDS="1") as both:
        yield both


@pytest.fixture
def chance() -> random.Random:
    return random.Random(5)  # noqa: S311 - moments


def test_a_repository_with_an_app_becomes_tools_without_a_model_and_a_description_does_not(data: Path, tmp_path: Path) -> None:
    url = repository(tmp_path / "repository", {"app.py": _APP, "requirements.txt": "fastapi\n"})
    service = ServiceProcess(tmp_path / "plain", data, REPO_SCHEMES="https,file")
    service.start()
    try:
        described, deployed = (
            asked(service, spec) for spec in (word_counter("described"), {"type": "github_deploy", "repo_url": url, "tool_name": "numbers"})
        )
        refused = ended(service, described)
        assert refused.status is TaskState.FAILED
        assert "TOOL_AGENT_MODEL" in refused.reason
        assert left_of(service, described, "described") == {}
        made = ended(service, deployed)
        assert made.status is TaskState.COMPLETED, made.reason
        assert made.tool_ids == ("numbers_double", "numbers_total")
        assert [one.stage for one in made.stages] == [*Stage]
        assert run_tool(service.http, "numbers_total", {"numbers": [1, 2, 3]})[1].result == {"total": 6}
        assert run_tool(service.http, "numbers_double", {"number": 21})[1].result == {"total": 42}
    finally:
        service.end()
    service.wait_until_nothing_is_left()


def test_what_a_model_writes_is_judged_by_examples_that_it_never_saw(made: tuple[ServiceProcess, ModelServer]) -> None:
    service, model = made
    # The scenario says which words may be nowhere in what the model is asked.
    task_id = asked(service, word_counter(), key_that_withholds(word_counter(), 2))
    task = ended(service, task_id)
    assert task.status is TaskState.COMPLETED, task.reason
    assert run_tool(service.http, "word_counter", {"text": "b a b c"})[1].result == {"words": 4, "most_common": "b"}
    (version,) = evidence(service, "word_counter").versions
    assert version.evidence is not None
    assert version.evidence.behaviour == "verified"
    assert [check.check for check in version.evidence.checks if not check.passed] == []
    assert [fault for fault in model.unmet() if "word_counter" in fault] == []
    assert task.cost_usd > 0
    assert rows(service, "SELECT count(*) FROM model_turns WHERE task_id = ?", task_id) == [(5,)]
    # It would answer what the others ask for.
    service.http.delete("/tools/word_counter").raise_for_status()
    assert left_of(service, task_id, "word_counter").keys() == {"tools"}


def test_a_tool_that_looks_its_answers_up_is_refused_and_leaves_nothing(made: tuple[ServiceProcess, ModelServer]) -> None:
    service, _ = made
    # It knows the answers to the examples that it is shown, and not to the one that is kept back.
    spec = word_counter("looked_up")
    task_id = asked(service, spec, key_that_withholds(spec, 2))
    task = ended(service, task_id)
    assert task.status is TaskState.FAILED
    assert "withheld examples" in task.reason
    # All that it could know is right.
    assert "given examples" not in task.reason
    assert left_of(service, task_id, "looked_up") == {}
    assert service.http.get("/tools/looked_up").status_code == httpx.codes.NOT_FOUND


def test_a_build_whose_service_is_killed_three_times_is_done_once_and_paid_once(
    made: tuple[ServiceProcess, ModelServer], chance: random.Random
) -> None:
    service, model = made
    outcome = killed_build(service, model, "killed", 3, chance)
    assert outcome.faults == []
    assert len(outcome.moments) == 3, outcome


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_cancelled_build_leaves_nothing_but_its_log_and_reason(made: tuple[ServiceProcess, ModelServer], number: int) -> None:
    chance = random.Random(number)  # noqa: S311 - a moment
    assert cancelled_build(made[0], f"cancelled_{number}", chance).faults == []
