"""An external Temporal server goes away and comes back."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.system.conftest import MakeService
from tests.system.effects import count_of, wait_for_effect
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.temporal_server import TemporalServer
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.idempotency import call_id_for_key

pytestmark = pytest.mark.timeout(240)

_PATIENCE_S = 3


@pytest.fixture
def server(tmp_path: Path) -> Generator[TemporalServer]:
    server = TemporalServer(tmp_path)
    server.start()
    yield server
    server.kill()


def _checks(service: ServiceProcess) -> tuple[int, dict[str, str]]:
    answer = service.http.get("/health")
    return answer.status_code, answer.json()["checks"]


def _calculated(service: ServiceProcess) -> ToolResult | None:
    status, result = run_tool(service.http, "calculator", {"expression": "6 * 7"}, "while-away")
    return None if status == 503 else result


def test_while_temporal_is_away_everything_says_so_and_when_it_is_back_all_goes_on(
    server: TemporalServer, make_service: MakeService, effects: Path
) -> None:
    service = make_service(TEMPORAL_ADDRESS=server.address, TEMPORAL_PATIENCE_S=str(_PATIENCE_S))
    service.start()
    begun = service.begin("again", {"effects": str(effects), "until": str(effects.with_name("go on"))})
    wait_for_effect(effects)

    server.kill()
    wait_until(lambda: not service.is_healthy(), "the service knows that Temporal is away")
    status, checks = _checks(service)
    assert status == 503
    assert checks["temporal"] != "ok"
    assert (checks["database"], checks["worker"]) == ("ok", "ok")
    status, result = run_tool(service.http, "calculator", {"expression": "6 * 7"}, "while-away")
    assert (status, result.error_type) == (503, ErrorType.UNAVAILABLE)
    assert service.http.get("/tools").is_success, "what needs no Temporal still works"
    effects.with_name("go on").touch()

    server.start()
    wait_until(service.is_healthy, "the service is healthy again")
    # Temporal gives the lane its next task a few seconds after it is healthy; until then the answer is 503 with `Retry-After`.
    answered = wait_until(lambda: _calculated(service), "the call that was accepted while Temporal was away has its result")
    assert answered.result == {"expression": "6 * 7", "result": 42}
    assert service.ended_task(begun, 90).status is TaskState.COMPLETED
    assert count_of(effects) >= 1
    assert service.stop() == 0


@pytest.mark.long
def test_when_temporal_stays_away_a_waiting_caller_is_told_and_the_service_can_still_be_stopped(
    server: TemporalServer, make_service: MakeService, effects: Path
) -> None:
    service = make_service(TEMPORAL_ADDRESS=server.address, TEMPORAL_PATIENCE_S=str(_PATIENCE_S), SHUTDOWN_GRACE_S="1")
    service.start()
    with ThreadPoolExecutor(1) as caller:
        waiting = caller.submit(
            run_tool, service.http, "once", {"effects": str(effects), "until": str(effects.with_name("never"))}, "waits"
        )
        wait_for_effect(effects)
        server.kill()
        status, result = waiting.result(60)
    assert (status, result.error_type) == (503, ErrorType.UNAVAILABLE)
    assert result.call_id == call_id_for_key(None, "waits")
    assert service.stop() == 0
    service.wait_until_nothing_is_left()
