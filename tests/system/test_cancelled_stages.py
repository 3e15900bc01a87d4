"""A task that makes a tool of a Python program leaves nothing behind if it is cancelled, in any stage."""

from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.system.catalog import make_catalog
from tests.system.making_tasks import asked, ended, left_of, task
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.stages import WaitingIndex, program, waiting_index
from tests.system.waiting import wait_until
from toolagent.contracts.making import Stage
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.tasks import TaskState

pytestmark = pytest.mark.timeout(400)

_ENDED_S = 30.0


@pytest.fixture(scope="module")
def index() -> Generator[WaitingIndex]:
    with waiting_index() as index:
        yield index


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, index: WaitingIndex) -> Generator[ServiceProcess]:
    data = make_catalog(tmp_path_factory.mktemp("stages-data"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL"):
            patch.delenv(name, raising=False)
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        service = ServiceProcess(tmp_path_factory.mktemp("stages"), data, REPO_SCHEMES="https,file")
        service.start()
        yield service
        service.end()
    service.wait_until_nothing_is_left()


def begun(service: ServiceProcess, folder: Path, waits: str, tool_id: str) -> str:
    url = program(folder / "origin", waits)
    return asked(service, {"type": "github_deploy", "repo_url": url, "tool_name": tool_id})


def says(text: str) -> Callable[[ServiceProcess, WaitingIndex, str], bool]:
    """Whether the progress of the task contains the text."""
    return lambda service, _, task_id: text in (task(service, task_id).progress or "")


def runs(text: str) -> Callable[[ServiceProcess, WaitingIndex, str], bool]:
    """Whether a process of the service has the text in its command line."""
    return lambda service, _, __: any(text in command for command in service.leftovers().values())


STAGES: Mapping[str, Callable[[ServiceProcess, WaitingIndex, str], bool]] = {
    "cloning": says("cloning"),
    "building": says("building the project"),
    "locking": lambda _, index, __: any(path.startswith("/simple/locking/") for path in index.asked),
    "installing": lambda _, index, __: any(path.endswith(".whl") for path in index.asked),
    "reading": says("reading the parsers"),
    "running": runs("run_waits.py"),
}
_SHORT = ("building", "installing", "running")
"""What a repository's own code does, what waits for an index, and what runs the tool."""


@pytest.mark.parametrize("waits", [pytest.param(waits, marks=() if waits in _SHORT else pytest.mark.long) for waits in STAGES])
def test_a_task_that_is_cancelled_in_a_stage_leaves_nothing(
    service: ServiceProcess, index: WaitingIndex, tmp_path: Path, waits: str
) -> None:
    task_id = begun(service, tmp_path, waits, f"cancelled_{waits}")
    wait_until(lambda: STAGES[waits](service, index, task_id) or task(service, task_id).ended_at, f"{task_id} is {waits}")
    before = task(service, task_id)
    assert before.ended_at is None, before.reason
    assert service.http.post(f"/tasks/{task_id}/cancel").is_success
    made = wait_until(lambda: one if (one := task(service, task_id)).ended_at else None, f"{task_id} has ended", _ENDED_S)
    assert (made.status, made.reason.partition(".")[0]) == (TaskState.CANCELLED, "It was cancelled")
    assert nothing_left(service, made, f"cancelled_{waits}") == {}


def nothing_left(service: ServiceProcess, made: MakingTask, tool_id: str) -> Mapping[str, object]:
    """What is left of the task, its tools and its sandboxes; empty if nothing is."""
    found = dict(left_of(service, made.task_id, tool_id))
    if service.http.get(f"/tools/{tool_id}").status_code != 404:
        found["tool"] = tool_id
    if running := [command for command in service.leftovers().values() if "run_waits" in command or "reader.py" in command]:
        found["programs"] = running
    return found


def said_by(service: ServiceProcess, tool_id: str) -> JsonValue:
    result = run_tool(service.http, tool_id, {"word": "there"})[1].result
    assert isinstance(result, dict)
    return result["stdout"]


def test_a_task_that_is_cancelled_while_it_registers_is_done_or_leaves_nothing(service: ServiceProcess, tmp_path: Path) -> None:
    task_id = begun(service, tmp_path, "", "cancelled_registering")
    late = (Stage.REGISTER, Stage.ANNOUNCE)
    wait_until(lambda: (one := task(service, task_id)).ended_at or one.stage in late, f"{task_id} registers", 120.0)
    service.http.post(f"/tasks/{task_id}/cancel")
    made = ended(service, task_id)
    if made.status is TaskState.COMPLETED:
        assert said_by(service, "cancelled_registering") == "there\n"
        service.http.delete("/tools/cancelled_registering").raise_for_status()
        assert left_of(service, task_id, "cancelled_registering").keys() <= {"tools", "calls/"}
    else:
        assert made.status is TaskState.CANCELLED
        assert nothing_left(service, made, "cancelled_registering") == {}
