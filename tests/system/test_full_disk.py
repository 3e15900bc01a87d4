"""A disk without room: /health says so, calls are refused at once, and all goes on by itself when there is room again."""

from pathlib import Path

import httpx
import pytest

from tests.disks import fill, tiny_disk
from tests.system.conftest import MakeService
from tests.system.service_process import run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType

pytestmark = pytest.mark.timeout(240)

_SUM = {"expression": "6 * 7"}


def test_a_full_disk_is_said_at_once_and_all_goes_on_when_there_is_room(make_service: MakeService, tmp_path: Path) -> None:
    service = make_service()
    service.folder.mkdir()
    with tiny_disk(service.state, "80m") as disk:
        service.start()
        assert run_tool(service.http, "calculator", _SUM)[0] == httpx.codes.OK
        fill(disk / "filler")
        # Neither waits for anything to time out.
        bounded = httpx.Client(base_url=service.api_url, timeout=3, trust_env=False)
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
        (disk / "filler").unlink()
        wait_until(service.is_healthy, "the service is healthy again")
        status, result = run_tool(service.http, "calculator", _SUM, "once there is room")
        assert status == httpx.codes.OK, (result, service.output)
        service.stop()


def test_a_service_that_is_stopped_on_a_full_disk_ends_its_tools_and_is_at_fault_for_nothing(
    make_service: MakeService, tmp_path: Path
) -> None:
    service = make_service()
    service.folder.mkdir()
    with tiny_disk(service.state, "80m") as disk:
        service.start()
        assert run_tool(service.http, "versatile", {"x": 1})[0] == httpx.codes.OK
        fill(disk / "filler")
        assert service.stop() == 0, service.output
        assert "end_of_tool_not_noted" in service.output
        assert "Traceback" not in service.output
        (disk / "filler").unlink()
