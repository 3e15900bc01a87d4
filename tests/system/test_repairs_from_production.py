"""A tool whose calls fail is repaired without a person; an input that ends its process does not take it down."""

from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from tests.system.catalog import make_catalog
from tests.system.making_tasks import ended, evidence, serving
from tests.system.production_repair import SCENARIO, SETTINGS, Traffic, add_tools, broken_under_traffic
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.quarantine import Quarantine
from toolagent.contracts.tasks import TaskState

pytestmark = pytest.mark.timeout(500)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[ServiceProcess, Path]]:
    folder = tmp_path_factory.mktemp("production")
    data = make_catalog(folder)
    add_tools(data)
    with serving(folder, data, SCENARIO, **SETTINGS) as (service, _):
        yield service, data


@pytest.mark.promise("repaired-from-production")
def test_a_source_that_is_broken_under_traffic_ends_with_a_repaired_version_whatever_dies(served: tuple[ServiceProcess, Path]) -> None:
    service, data = served
    made = broken_under_traffic(service, data, killed=True)
    assert made.status is TaskState.COMPLETED, made.reason
    assert evidence(service, "reckoner").active_version == "1.0.1"
    # It is well: no second repair.
    tasks = service.http.get("/tasks", params={"tool_id": "reckoner"}).json()["tasks"]
    assert [one["task_id"] for one in tasks] == [made.task_id]


@pytest.mark.promise("quarantined-inputs")
def test_an_input_that_ends_the_process_is_quarantined_and_is_the_first_that_its_repair_is_asked(
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

    made = ended(service, wait_until(repair, "a repair is opened", 60))
    assert made.status is TaskState.COMPLETED, made.reason
    proof = evidence(service, "abacus").versions[0].evidence
    assert proof is not None
    assert [(check.passed, check.applies) for check in proof.checks if check.check == "quarantined input"] == [(True, True)]
    assert [check.check for check in proof.checks].index("quarantined input") == 1
    status, mended = traffic.call([0])
    assert (status, mended.metadata["version"]) == (httpx.codes.OK, "1.0.1")
