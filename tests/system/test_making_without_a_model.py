"""Tools that a service without a model makes of repositories, its reports, and requests for which it makes nothing."""

from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.making.inspection.git import git, repository
from tests.system.catalog import make_catalog
from tests.system.making_tasks import asked, ended, evidence, left_of, rows
from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.making import Stage
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.tasks import TaskState

pytestmark = pytest.mark.timeout(400)

_APP = """\
import time

from fastapi import FastAPI, Form, Response
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


@app.get("/slow/{number}", operation_id="slow")
def slow(number: int) -> Total:
    time.sleep(120 if number == 1_000 else 0)
    return Total(total=number)


@app.post("/upload", operation_id="upload")
def upload(name: str = Form()) -> Total:
    return Total(total=len(name))


@app.get("/picture", operation_id="picture", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def picture() -> Response:
    return Response(b"", media_type="image/png")
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    data = make_catalog(tmp_path_factory.mktemp("plain-data"))
    service = ServiceProcess(tmp_path_factory.mktemp("plain"), data, REPO_SCHEMES="https,file")
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repositories") / "numbers"
    repository(folder, {"app.py": _APP, "requirements.txt": "fastapi\npython-multipart\n"})
    return folder


@pytest.fixture(scope="module")
def deployed(service: ServiceProcess, source: Path) -> MakingTask:
    url = f"file://{source}"
    return ended(service, asked(service, {"type": "github_deploy", "repo_url": url, "tool_name": "numbers"}))


def doubling(tool_id: str, *examples: tuple[int, int]) -> Mapping[str, JsonValue]:
    """The same tool by another name, with expected outputs for these numbers."""
    expected: list[JsonValue] = [{"input": {"number": number}, "expected_output": {"total": total}} for number, total in examples]
    return {"type": "build_tool", "tool_name": tool_id, "description": "Double a number, not slow.", "examples": expected}


def test_a_repository_with_an_app_becomes_tools(service: ServiceProcess, deployed: MakingTask) -> None:
    assert deployed.status is TaskState.COMPLETED, deployed.reason
    assert sorted(deployed.tool_ids) == ["numbers_double", "numbers_slow", "numbers_total", "numbers_upload"]
    assert [one.stage for one in deployed.stages] == [*Stage]
    assert run_tool(service.http, "numbers_total", {"numbers": [1, 2, 3]})[1].result == {"total": 6}
    assert run_tool(service.http, "numbers_double", {"number": 21})[1].result == {"total": 42}
    assert run_tool(service.http, "numbers_upload", {"name": "three"})[1].result == {"total": 5}


def test_its_evidence_has_the_commit_the_lock_and_no_model(service: ServiceProcess, deployed: MakingTask, source: Path) -> None:
    found = [version.evidence for tool_id in deployed.tool_ids for version in evidence(service, tool_id).versions]
    assert len({(one.source, one.lock) for one in found if one is not None}) == 1
    assert found[0] is not None
    assert found[0].lock is not None
    assert found[0].commit == git(source, "rev-parse", "HEAD")
    assert (found[0].provider, found[0].model, found[0].prompts, found[0].turns, found[0].cost_usd) == (None, None, (), 0, 0.0)
    assert 0 < found[0].seconds < found[0].total_seconds


def test_what_was_left_out_is_told(service: ServiceProcess, deployed: MakingTask) -> None:
    """It is named in the reason, in the log and with each version."""
    assert deployed.evidence is not None
    (left_out,) = deployed.evidence.left_out
    assert left_out.startswith("GET /picture: ")
    assert left_out in deployed.reason
    assert [line for line in deployed.log if f"[BUILD] left out: {left_out}" in line] != []


def test_what_a_tool_does_already_is_not_made_again(service: ServiceProcess, deployed: MakingTask) -> None:
    assert deployed.status is TaskState.COMPLETED
    task = ended(service, asked(service, doubling("twice", (4, 8), (5, 10))))
    assert (task.status, task.tool_ids) == (TaskState.COMPLETED, ("numbers_double",)), task.reason
    assert task.reason == "'numbers_double' (version 1.0.0) does that already: it passed 2 of 2 examples. Nothing was built."
    assert [one.stage for one in task.stages] == [Stage.INSPECT]
    assert left_of(service, task.task_id, "twice") == {}
    recorded = rows(service, "SELECT tool_id, is_success FROM calls WHERE caller LIKE ?", f"%{task.task_id}%")
    assert recorded == [("numbers_double", 1)] * 2


@pytest.mark.long
def test_tools_that_fail_or_hang_answer_nothing(service: ServiceProcess, deployed: MakingTask) -> None:
    """`numbers_double` is wrong and `numbers_slow` takes too long, so a tool would have to be made, and there is no model."""
    assert deployed.status is TaskState.COMPLETED
    task = ended(service, asked(service, doubling("as_it_is", (7, 7), (1_000, 1_000))))
    assert task.status is TaskState.FAILED
    assert "TOOL_AGENT_MODEL" in task.reason
    tried = rows(service, "SELECT tool_id, is_success FROM calls WHERE caller LIKE ? ORDER BY created_at", f"%{task.task_id}%")
    assert tried == [("numbers_double", 1), ("numbers_slow", 1), ("numbers_slow", 0)]
    assert left_of(service, task.task_id, "as_it_is") == {}


@pytest.mark.long
def test_an_app_that_does_not_start_says_so_when_there_is_no_model(service: ServiceProcess, tmp_path: Path) -> None:
    app = "import no_such_package\nfrom fastapi import FastAPI\n\napp = FastAPI()\n"
    url = repository(tmp_path / "broken", {"app.py": app, "requirements.txt": "fastapi\n"})
    environments = {path.name for path in service.environments.iterdir()}
    task = ended(service, asked(service, {"type": "github_deploy", "repo_url": url, "tool_name": "without_package"}))
    assert task.status is TaskState.FAILED
    for said in ("TOOL_AGENT_MODEL", "The app does not start", "No module named 'no_such_package'"):
        assert said in task.reason
    assert [line for line in task.log if "[BUILD]" in line and "no_such_package" in line] != []
    assert left_of(service, task.task_id, "without_package") == {}
    # It had one of its own, which was made, since the app was started.
    assert {path.name for path in service.environments.iterdir() if path.suffix != ".lock"} <= environments
