"""A disk without room: /health says so, calls are refused at once, and all goes on by itself when there is room again."""

from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from tests.disks import fill, tiny_disk
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType

pytestmark = pytest.mark.timeout(240)

_SUM = {"expression": "6 * 7"}


@pytest.fixture(scope="module")
def service(catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    """Its state is on a small disk of its own."""
    service = ServiceProcess(tmp_path_factory.mktemp("full"), catalog)
    with tiny_disk(service.state, "80m"):
        service.start()
        yield service
        service.end()
        service.wait_until_nothing_is_left()


@pytest.fixture
def filler(service: ServiceProcess) -> Generator[Path]:
    """What a test fills the disk with."""
    filler = service.state / "filler"
    yield filler
    filler.unlink(missing_ok=True)


def test_a_full_disk_is_said_at_once_and_all_goes_on_when_there_is_room(service: ServiceProcess, filler: Path) -> None:
    assert run_tool(service.http, "calculator", _SUM)[0] == httpx.codes.OK
    fill(filler)
    # Neither waits until Temporal's client gives up: ten seconds.
    bounded = httpx.Client(base_url=service.api_url, timeout=9, trust_env=False)
    with bounded:
        health = bounded.get("/health")
        status, result = run_tool(bounded, "calculator", _SUM, "once there is room")
    checks = health.json()["checks"]
    assert (health.status_code, {name for name, said in checks.items() if "the disk is full" in said}) == (
        httpx.codes.SERVICE_UNAVAILABLE,
        {"temporal", "database", "state"},
    )
    assert (status, result.error_type) == (httpx.codes.SERVICE_UNAVAILABLE, ErrorType.UNAVAILABLE)
    assert result.error is not None
    assert result.error.details == {"cause": "disk_full", "sent": False}
    filler.unlink()
    wait_until(service.is_healthy, "the service is healthy again")
    status, result = run_tool(service.http, "calculator", _SUM, "once there is room")
    assert status == httpx.codes.OK, (result, service.output)


def test_a_service_that_is_stopped_on_a_full_disk_ends_its_tools_and_is_at_fault_for_nothing(service: ServiceProcess, filler: Path) -> None:
    assert run_tool(service.http, "versatile", {"x": 1})[0] == httpx.codes.OK
    before = len(service.output)
    fill(filler)
    assert service.stop() == 0, service.output
    assert "end_of_tool_not_noted" in service.output[before:]
    assert "Traceback" not in service.output[before:]
