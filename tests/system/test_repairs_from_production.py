"""A tool whose calls fail is repaired without a person; an input that ends its process is quarantined."""

import json
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from tests.system.catalog import make_catalog
from tests.system.making_tasks import ended, evidence, rows, serving
from tests.system.production_repair import BROKEN, SCENARIO, SETTINGS, Traffic, add_tools, break_source, broken_under_traffic
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.quarantine import Quarantine
from toolagent.contracts.tasks import TaskState

pytestmark = pytest.mark.timeout(500)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, environments: Path) -> Generator[tuple[ServiceProcess, Path]]:
    folder = tmp_path_factory.mktemp("production")
    data = make_catalog(folder, environments)
    add_tools(data)
    with serving(folder, data, SCENARIO, **SETTINGS) as (service, model):
        yield service, data
        assert model.unmet() == ()


@pytest.mark.promise("repaired-from-production")
def test_a_source_that_is_broken_under_traffic_ends_with_a_repaired_version_whatever_dies(served: tuple[ServiceProcess, Path]) -> None:
    service, data = served
    made = broken_under_traffic(service, data, killed=True)
    assert made.status is TaskState.COMPLETED, made.reason
    assert evidence(service, "reckoner").active_version == "1.0.1"
    # It is well: no second repair.
    tasks = service.http.get("/tasks", params={"tool_id": "reckoner"}).json()["tasks"]
    assert [one["task_id"] for one in tasks] == [made.task_id]


@pytest.mark.long
@pytest.mark.promise("good-answers-stay", "repaired-beside")
def test_a_repair_that_breaks_a_recorded_good_call_is_refused_and_the_old_version_stays(served: tuple[ServiceProcess, Path]) -> None:
    service, _ = served
    good: tuple[dict[str, JsonValue], ...] = ({"numbers": [1, 2, 3], "operation": "sum"}, {"numbers": [2, 4], "operation": "mean"})
    for params in good:
        assert run_tool(service.http, "teller", params)[1].status == "success"
    assert run_tool(service.http, "teller", {"numbers": [], "operation": "mean"})[1].error_type is ErrorType.EXECUTION_ERROR
    asked = service.http.post("/tools/teller/repair", json={"error": "It fails for an empty list."}).raise_for_status()
    made = ended(service, asked.json()["task_id"])
    assert made.status is TaskState.FAILED
    assert "recorded calls" in made.reason
    assert "at $.result 6 came before and 7 now" in made.reason
    assert "stays as it is; what was to be mended is its version 1.0.0" in made.reason
    assert [(one.version, one.is_active) for one in evidence(service, "teller").versions] == [("1.0.0", True)]
    assert run_tool(service.http, "teller", {"numbers": [1, 2, 3], "operation": "sum"})[1].result == {"result": 6, "count": 3}
    assert [*(service.state / "making").glob("repair_*")] == []


@pytest.mark.promise("quarantined-inputs", "repaired-beside")
def test_an_input_that_ends_the_process_is_quarantined_and_is_the_first_that_its_repair_is_asked_which_can_be_taken_back(
    served: tuple[ServiceProcess, Path],
) -> None:
    service, _ = served
    traffic = Traffic(service, "abacus")
    assert traffic.call()[0] == httpx.codes.OK
    # A call that may be repeated asks it three times.
    status, first = traffic.call([0])
    assert (status, first.error_type) == (httpx.codes.BAD_GATEWAY, ErrorType.EXECUTION_ERROR)
    status, second = traffic.call([0])
    assert (status, second.error_type) == (httpx.codes.CONFLICT, ErrorType.REJECTED)
    assert traffic.call()[0] == httpx.codes.OK
    shown = Quarantine.model_validate_json(service.http.get("/tools/abacus/quarantine").content)
    assert [(one.version, one.params, one.crashes) for one in shown.inputs] == [("1.0.0", {"numbers": [0], "operation": "sum"}, 3)]

    def repair() -> str | None:
        assert traffic.call()[0] == httpx.codes.OK, "others are served meanwhile"
        tasks = service.http.get("/tasks", params={"tool_id": "abacus"}).json()["tasks"]
        return tasks[0]["task_id"] if tasks else None

    made = ended(service, wait_until(repair, "a repair is opened", 60, 0.2))
    assert made.status is TaskState.COMPLETED, made.reason
    versions = evidence(service, "abacus")
    assert (versions.active_version, [one.version for one in versions.versions]) == ("1.0.1", ["1.0.1", "1.0.0"])
    proof = versions.versions[0].evidence
    assert proof is not None
    assert proof.rounds == 2
    for name in ("quarantined input", "recorded calls"):
        assert [(check.passed, check.applies) for check in proof.checks if check.check == name] == [(True, True)]
    assert [check.check for check in proof.checks].index("quarantined input") == 1
    status, mended = traffic.call([0])
    assert (status, mended.metadata["version"]) == (httpx.codes.OK, "1.0.1")
    assert service.http.get("/tools/abacus").json()["tags"] == ["sums"]
    assert service.http.post("/tools/abacus/rollback", json={"from_version": "1.0.1"}).is_success
    assert evidence(service, "abacus").active_version == "1.0.0"


def test_without_a_model_there_is_an_alert_and_calls_go_on_and_an_input_that_ends_a_tool_that_acts_is_sent_twice(
    tmp_path: Path, environments: Path
) -> None:
    data = make_catalog(tmp_path, environments)
    add_tools(data)
    registry = json.loads((data / "registry.json").read_text("utf-8"))
    for tool in registry["tools"]:
        if tool["tool_id"] == "abacus":
            tool |= {"side_effect_scope": "local_state", "idempotent": False}
    (data / "registry.json").write_text(json.dumps(registry), "utf-8")
    break_source(data, "reckoner", BROKEN)
    service = ServiceProcess(tmp_path / "service", data, **SETTINGS)
    service.start()
    try:
        abacus, reckoner = Traffic(service, "abacus"), Traffic(service, "reckoner")
        answers = [abacus.call([0])[0] for _ in range(3)]
        assert answers == [httpx.codes.BAD_GATEWAY, httpx.codes.BAD_GATEWAY, httpx.codes.CONFLICT]
        assert abacus.call()[0] == httpx.codes.OK
        for tool_id, traffic in (("reckoner", reckoner), ("abacus", abacus)):
            alerts = "SELECT details FROM events WHERE event_id LIKE 'repair:%' AND tool_id = ?"
            wait_until(lambda: traffic.call() and rows(service, alerts, tool_id), f"an alert of {tool_id}", 60, 0.2)  # noqa: B023
            ((told,),) = rows(service, alerts, tool_id)
            assert "TOOL_AGENT_MODEL" in str(told)
        assert set(reckoner.seen) == {"502 execution_error"}, "calls go on"
        assert abacus.call()[0] == httpx.codes.OK
        assert service.http.get("/tasks").json()["tasks"] == []
        assert service.http.delete("/tools/abacus/quarantine").json() == {"lifted": 1}
        assert abacus.call([0])[0] == httpx.codes.BAD_GATEWAY
    finally:
        service.end()
        service.wait_until_nothing_is_left()
