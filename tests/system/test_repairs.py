"""A tool that fails is mended beside the version in use, and takes over only when it still answers what was answered well."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.making.gate.conftest import INPUT, OUTPUT, RECKONER
from tests.making.gate.test_judging import EMPTY_MEAN
from tests.system.catalog import make_catalog
from tests.system.making_tasks import ended, evidence, serving
from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.model_server import ModelServer

pytestmark = pytest.mark.timeout(400)

_ROUNDS = 2


def _add_broken_tools(folder: Path) -> None:
    """To the catalog: they divide by zero."""
    registry, sources = (json.loads((folder / name).read_text("utf-8")) for name in ("registry.json", "sources.json"))
    for tool_id in ("reckoner", "abacus"):
        project = folder / "projects" / tool_id
        project.mkdir()
        for name in ("main.py", "pyproject.toml", "requirements.lock"):
            (project / name).write_text((RECKONER / name).read_text("utf-8").replace(*EMPTY_MEAN), "utf-8")
        manifest = {"tool_id": tool_id, "name": "Reckoner", "side_effect_scope": "none", "tags": ["sums"], "timeout_s": 20}
        registry["tools"].append({**manifest, "input_schema": INPUT, "output_schema": OUTPUT})
        sources["sources"][tool_id] = [{"type": "local", "host_dir": f"projects/{tool_id}", "endpoint_path": "/run"}]
    (folder / "registry.json").write_text(json.dumps(registry), "utf-8")
    (folder / "sources.json").write_text(json.dumps(sources), "utf-8")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[ServiceProcess, ModelServer]]:
    folder = tmp_path_factory.mktemp("repairs")
    data = make_catalog(folder)
    _add_broken_tools(data)
    with serving(folder, data, "reckoner_mended", CODING_ROUNDS=str(_ROUNDS)) as both:
        yield both


def repaired(service: ServiceProcess, tool_id: str) -> MakingTask:
    """After two calls that it answers, and one that it does not."""
    good: tuple[dict[str, JsonValue], ...] = ({"numbers": [1, 2, 3], "operation": "sum"}, {"numbers": [2, 4], "operation": "mean"})
    for params in good:
        assert run_tool(service.http, tool_id, params)[1].status == "success"
    failed = run_tool(service.http, tool_id, {"numbers": [], "operation": "mean"})[1]
    assert failed.error_type is ErrorType.EXECUTION_ERROR
    answer = service.http.post(f"/tools/{tool_id}/repair", json={"error": "It fails for an empty list."})
    assert answer.status_code == 202, answer.text
    return ended(service, answer.json()["task_id"])


@pytest.mark.promise("repaired-beside")
def test_a_repair_takes_over_once_it_answers_as_before_and_can_be_taken_back(served: tuple[ServiceProcess, ModelServer]) -> None:
    service, model = served
    made = repaired(service, "reckoner")
    assert made.status is TaskState.COMPLETED, made.reason
    assert model.unmet() == ()
    versions = evidence(service, "reckoner")
    assert (versions.active_version, [one.version for one in versions.versions]) == ("1.0.1", ["1.0.1", "1.0.0"])
    proof = versions.versions[0].evidence
    assert proof is not None
    assert proof.rounds == _ROUNDS
    assert [(check.passed, check.applies) for check in proof.checks if check.check == "recorded calls"] == [(True, True)]
    assert service.http.get("/tools/reckoner").json()["tags"] == ["sums"]
    mended = run_tool(service.http, "reckoner", {"numbers": [], "operation": "mean"})[1]
    assert mended.error is not None
    assert "no mean of nothing" in mended.error.message
    assert service.http.post("/tools/reckoner/rollback", json={"from_version": "1.0.1"}).is_success
    assert evidence(service, "reckoner").active_version == "1.0.0"


@pytest.mark.promise("good-answers-stay")
def test_a_repair_that_breaks_a_recorded_good_call_is_refused_and_the_old_version_stays(
    served: tuple[ServiceProcess, ModelServer],
) -> None:
    service, _ = served
    made = repaired(service, "abacus")
    assert made.status is TaskState.FAILED
    assert "recorded calls" in made.reason
    assert "at $.result 6 came before and 7 now" in made.reason
    assert "stays as it is; what was to be mended is its version 1.0.0" in made.reason
    versions = evidence(service, "abacus")
    assert [(one.version, one.is_active) for one in versions.versions] == [("1.0.0", True)]
    assert run_tool(service.http, "abacus", {"numbers": [1, 2, 3], "operation": "sum"})[1].result == {"result": 6, "count": 3}
    assert [*(service.state / "making").glob("repair_*")] == []
