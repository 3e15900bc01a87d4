"""What issue 5 is to show, over HTTP at a running service: repositories and descriptions become tools, whatever happens meanwhile."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.making.inspection.git import repository
from tests.system.catalog import make_catalog
from tests.system.making_tasks import SCENARIOS, WORD_COUNTER, asked, ended, key_that_withholds, left_of, task
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.making import Stage
from toolagent.contracts.tasks import TaskState
from toolagent.contracts.versions import ToolVersions
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import load_scenario

pytestmark = pytest.mark.timeout(400)

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


@contextmanager
def serving(folder: Path, data: Path, scenario: str, **settings: str) -> Generator[tuple[ServiceProcess, ModelServer]]:
    """A service whose model says what the scenario has it say."""
    with ModelServer(load_scenario(SCENARIOS / f"{scenario}.yaml"), strict=False) as model:
        given = {"MODEL": "claude-sonnet-5", "MODEL_API_KEY": "k", "MODEL_BASE_URL": model.url, "REPO_SCHEMES": "https,file", **settings}
        service = ServiceProcess(folder / "service", data, **given)
        service.start()
        try:
            yield service, model
        finally:
            service.end()
            service.wait_until_nothing_is_left()


def evidence(service: ServiceProcess, tool_id: str) -> ToolVersions:
    return ToolVersions.model_validate_json(service.http.get(f"/tools/{tool_id}/versions").raise_for_status().content)


def test_a_repository_with_an_app_becomes_tools_without_a_model(data: Path, tmp_path: Path) -> None:
    url = repository(tmp_path / "repository", {"app.py": _APP, "requirements.txt": "fastapi\n"})
    with serving(tmp_path, data, "word_counter") as (service, model):
        made = ended(service, asked(service, {"type": "github_deploy", "repo_url": url, "tool_name": "numbers"}))
        assert made.status is TaskState.COMPLETED, made.reason
        assert made.tool_ids == ("numbers_double", "numbers_total")
        assert [one.stage for one in made.stages] == [*Stage]
        assert run_tool(service.http, "numbers_total", {"numbers": [1, 2, 3]})[1].result == {"total": 6}
        assert run_tool(service.http, "numbers_double", {"number": 21})[1].result == {"total": 42}
        assert not any(turn.asked for turn in model.turns()), "The model was asked."


def test_what_a_model_writes_is_judged_by_examples_that_it_never_saw(data: Path, tmp_path: Path) -> None:
    with serving(tmp_path, data, "word_counter") as (service, model):
        # The scenario says which words may be nowhere in what the model is asked.
        made = ended(service, asked(service, WORD_COUNTER, key_that_withholds(WORD_COUNTER, 2)))
        assert made.status is TaskState.COMPLETED, made.reason
        assert run_tool(service.http, "word_counter", {"text": "b a b c"})[1].result == {"words": 4, "most_common": "b"}
        (version,) = evidence(service, "word_counter").versions
        assert version.evidence is not None
        assert version.evidence.behaviour == "verified"
        assert all(check.passed for check in version.evidence.checks)
        assert model.unmet() == ()
        assert made.cost_usd > 0


def test_a_tool_that_looks_its_answers_up_is_refused_and_leaves_nothing(data: Path, tmp_path: Path) -> None:
    with serving(tmp_path, data, "looked_up", CODING_ROUNDS="1") as (service, _):
        # It knows the answers to the examples that it is shown, and not to the one that is kept back.
        task_id = asked(service, WORD_COUNTER, key_that_withholds(WORD_COUNTER, 2))
        made = ended(service, task_id)
        assert made.status is TaskState.FAILED
        assert "withheld examples" in made.reason
        assert left_of(service, task_id, "word_counter") == {}
        assert service.http.get("/tools/word_counter").status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize("stage", [Stage.INSPECT, Stage.BUILD, Stage.VERIFY])
def test_a_build_goes_on_after_its_worker_was_killed_and_pays_no_turn_twice(data: Path, tmp_path: Path, stage: Stage) -> None:
    with serving(tmp_path, data, "word_counter") as (service, model):
        task_id = asked(service, WORD_COUNTER)
        wait_until(lambda: task(service, task_id).stage in (stage, Stage.ANNOUNCE), f"it is at {stage}", 120.0)
        service.kill()
        service.start()
        made = ended(service, task_id)
        assert made.status is TaskState.COMPLETED, made.reason
        assert len(evidence(service, "word_counter").versions) == 1
        # One more for the turn that was on its way when the worker died.
        assert sum(turn.served - 1 for turn in model.turns()) <= 1
        service.http.delete("/tools/word_counter").raise_for_status()
        assert left_of(service, task_id, "word_counter").keys() <= {"tools"}


@pytest.mark.parametrize("stage", [Stage.BUILD, Stage.VERIFY])
def test_a_cancelled_build_leaves_nothing(data: Path, tmp_path: Path, stage: Stage) -> None:
    with serving(tmp_path, data, "word_counter") as (service, _):
        task_id = asked(service, WORD_COUNTER)
        wait_until(lambda: task(service, task_id).stage is stage, f"it is at {stage}", 120.0)
        assert service.http.post(f"/tasks/{task_id}/cancel").is_success
        assert ended(service, task_id).status is TaskState.CANCELLED
        assert left_of(service, task_id, "word_counter") == {}


def test_without_a_model_a_description_fails_with_what_to_set(data: Path, tmp_path: Path) -> None:
    with serving(tmp_path, data, "word_counter") as (service, _):
        service.end()
    plain = ServiceProcess(tmp_path / "plain", data)
    plain.start()
    try:
        task_id = asked(plain, WORD_COUNTER)
        made = ended(plain, task_id)
        assert made.status is TaskState.FAILED
        assert "TOOL_AGENT_MODEL" in made.reason
        assert left_of(plain, task_id, "word_counter") == {}
    finally:
        plain.end()
