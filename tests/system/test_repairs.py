"""A tool that fails is mended beside the version in use, and takes over only when it still answers what was answered well."""

import json
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

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A catalog with a tool that divides by zero."""
    (tmp_path / "catalog").mkdir()
    folder = make_catalog(tmp_path / "catalog")
    project = folder / "projects" / "reckoner"
    project.mkdir()
    for name in ("main.py", "pyproject.toml", "requirements.lock"):
        (project / name).write_text((RECKONER / name).read_text("utf-8").replace(*EMPTY_MEAN), "utf-8")
    registry, sources = (json.loads((folder / name).read_text("utf-8")) for name in ("registry.json", "sources.json"))
    manifest = {"tool_id": "reckoner", "name": "Reckoner", "side_effect_scope": "none", "tags": ["sums"], "timeout_s": 20}
    registry["tools"].append({**manifest, "input_schema": INPUT, "output_schema": OUTPUT})
    sources["sources"]["reckoner"] = [{"type": "local", "host_dir": "projects/reckoner", "endpoint_path": "/run"}]
    (folder / "registry.json").write_text(json.dumps(registry), "utf-8")
    (folder / "sources.json").write_text(json.dumps(sources), "utf-8")
    return folder


def repaired(service: ServiceProcess) -> MakingTask:
    """After two calls that it answers, and one that it does not."""
    good: tuple[dict[str, JsonValue], ...] = ({"numbers": [1, 2, 3], "operation": "sum"}, {"numbers": [2, 4], "operation": "mean"})
    for params in good:
        assert run_tool(service.http, "reckoner", params)[1].status == "success"
    failed = run_tool(service.http, "reckoner", {"numbers": [], "operation": "mean"})[1]
    assert failed.error_type is ErrorType.EXECUTION_ERROR
    answer = service.http.post("/tools/reckoner/repair", json={"error": "It fails for an empty list."})
    assert answer.status_code == 202, answer.text
    return ended(service, answer.json()["task_id"])


@pytest.mark.promise("repaired-beside")
def test_a_repair_takes_over_once_it_answers_as_before_and_can_be_taken_back(data: Path, tmp_path: Path) -> None:
    with serving(tmp_path, data, "reckoner_mended") as (service, model):
        made = repaired(service)
        assert made.status is TaskState.COMPLETED, made.reason
        assert model.unmet() == ()
        versions = evidence(service, "reckoner")
        assert (versions.active_version, [one.version for one in versions.versions]) == ("1.0.1", ["1.0.1", "1.0.0"])
        proof = versions.versions[0].evidence
        assert proof is not None
        assert [(check.passed, check.applies) for check in proof.checks if check.check == "recorded calls"] == [(True, True)]
        assert service.http.get("/tools/reckoner").json()["tags"] == ["sums"]
        mended = run_tool(service.http, "reckoner", {"numbers": [], "operation": "mean"})[1]
        assert mended.error is not None
        assert "no mean of nothing" in mended.error.message
        assert service.http.post("/tools/reckoner/rollback", json={"from_version": "1.0.1"}).is_success
        assert evidence(service, "reckoner").active_version == "1.0.0"


@pytest.mark.promise("good-answers-stay")
def test_a_repair_that_breaks_a_recorded_good_call_is_refused_and_the_old_version_stays(data: Path, tmp_path: Path) -> None:
    with serving(tmp_path, data, "reckoner_mended", CODING_ROUNDS="1") as (service, _):
        made = repaired(service)
        assert made.status is TaskState.FAILED
        assert "recorded calls" in made.reason
        assert "at $.result 6 came before and 7 now" in made.reason
        assert "stays as it is; what was to be mended is its version 1.0.0" in made.reason
        versions = evidence(service, "reckoner")
        assert [(one.version, one.is_active) for one in versions.versions] == [("1.0.0", True)]
        assert run_tool(service.http, "reckoner", {"numbers": [1, 2, 3], "operation": "sum"})[1].result == {"result": 6, "count": 3}
        assert [*(service.state / "making").glob("repair_*")] == []
