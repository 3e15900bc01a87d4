"""A full disk: /health reports it, calls are refused at once, and the service recovers by itself when there is room."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from tests.disks import fill, tiny_disk
from tests.system.effects import count_of, wait_for_effect
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult

pytestmark = pytest.mark.timeout(240)

_NOT_MADE: JsonValue = {"cause": "disk_full", "sent": False}
_GOES_ON: JsonValue = {"cause": "disk_full"}


@pytest.fixture(scope="module")
def service(catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    """A service with its state on a small disk."""
    service = ServiceProcess(tmp_path_factory.mktemp("full"), catalog)
    with tiny_disk(service.state, "80m"):
        service.start()
        yield service
        service.end()
        service.wait_until_nothing_is_left()


@pytest.fixture
def filler(service: ServiceProcess) -> Generator[Path]:
    """The file with which a test fills the disk."""
    filler = service.state / "filler"
    yield filler
    filler.unlink(missing_ok=True)


def test_a_full_disk_is_said_at_once_and_all_goes_on_when_there_is_room(service: ServiceProcess, filler: Path, effects: Path) -> None:
    go_on = effects.with_name("go on")

    def call(http: httpx.Client, line: str, **more: str) -> tuple[int, ToolResult]:
        return run_tool(http, "once", {"effects": str(effects), "line": line, **more}, line)

    # Nobody but the waiting caller waits until Temporal's client gives up: ten seconds.
    with ThreadPoolExecutor(1) as caller, httpx.Client(base_url=service.api_url, timeout=9, trust_env=False) as bounded:
        waiting = caller.submit(call, service.http, "waiting", until=str(go_on))
        wait_for_effect(effects, "waiting")
        fill(filler)
        health = bounded.get("/health")
        answers = {line: call(bounded, line) for line in ("first", "later")} | {"waiting": waiting.result()}
    checks = health.json()["checks"]
    assert (health.status_code, {name for name, said in checks.items() if "the disk is full" in said}) == (
        httpx.codes.SERVICE_UNAVAILABLE,
        {"temporal", "database", "state"},
    )
    assert {(status, result.error_type) for status, result in answers.values()} == {
        (httpx.codes.SERVICE_UNAVAILABLE, ErrorType.UNAVAILABLE)
    }
    told = {line: result.error.details for line, (_, result) in answers.items() if result.error is not None}
    # Room is looked for twenty times a second at most: the first call may have begun before it was missed.
    assert told == {"first": told["first"], "later": _NOT_MADE, "waiting": _GOES_ON}
    assert told["first"] in (_NOT_MADE, _GOES_ON)
    filler.unlink()
    wait_until(service.is_healthy, "the service is healthy again")
    go_on.touch()
    for line, (_, result) in answers.items():
        if told[line] == _NOT_MADE:
            assert service.http.get(f"/tasks/{result.call_id}").status_code == httpx.codes.NOT_FOUND, line
    ended = service.ended_task(answers["waiting"][1].call_id)
    assert ended.result is not None
    assert ended.result.error is None, ended.result
    for line in ("first", "later"):
        status, result = call(service.http, line)
        assert status == httpx.codes.OK, (result, service.output)
    assert [count_of(effects, line) for line in answers] == [1, 1, 1]


def test_a_service_that_is_stopped_on_a_full_disk_ends_its_tools_and_is_at_fault_for_nothing(service: ServiceProcess, filler: Path) -> None:
    assert run_tool(service.http, "versatile", {"x": 1})[0] == httpx.codes.OK
    before = len(service.output)
    fill(filler)
    assert service.stop() == 0, service.output
    assert "end_of_tool_not_noted" in service.output[before:]
    assert "Traceback" not in service.output[before:]
