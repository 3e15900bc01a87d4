"""An unavailable database: the error at the start names it, calls under load are not lost, and the service recovers by itself."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from engine.network.ports import free_port
from tests.postgres import PASSWORD, PostgresServer
from tests.system.conftest import MakeService
from tests.system.effects import count_of, wait_for_effect
from tests.system.refusing import Start, refused
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult

pytestmark = pytest.mark.timeout(300)

_CALLS = 8


@pytest.fixture
def url(own_postgres: PostgresServer) -> str:
    own_postgres.execute("CREATE DATABASE agent")
    return own_postgres.url("agent")


def test_a_database_that_does_not_answer_or_is_missing_is_named_at_the_start(
    tmp_path: Path, catalog: Path, postgres: PostgresServer
) -> None:
    urls = {"away": f"postgresql+asyncpg://agent:{PASSWORD}@127.0.0.1:{free_port()}/agent", "missing": postgres.url("nowhere")}
    starts = {name: Start(tmp_path / name, {"DATABASE_URL": url, "DATA_DIR": str(catalog)}) for name, url in urls.items()}
    for start in starts.values():
        start.folder.mkdir()
    for end in (ended := refused(starts)).values():
        assert (end.code, end.left) == (1, {}), end.err
        assert "Traceback" not in end.err
        assert PASSWORD not in end.err
        assert "TOOL_AGENT_DATABASE_URL" in end.err
    assert "createdb" in ended["missing"].err


def test_calls_under_load_outlive_a_database_that_goes_away_and_one_that_was_killed_or_hangs_is_said_to_be_away(
    own_postgres: PostgresServer, url: str, make_service: MakeService, effects: Path
) -> None:
    service, go_on = make_service(DATABASE_URL=url, BUCKET_LIMITS=f'{{"default": {_CALLS}}}'), effects.with_name("go on")
    service.start()
    with ThreadPoolExecutor(2 * _CALLS) as callers:
        # These have acted before the database goes, and must end with their one effect.
        working = [callers.submit(_call, service, effects, number, go_on) for number in range(_CALLS)]
        wait_for_effect(effects, str(_CALLS - 1))
        wait_until(lambda: all(count_of(effects, str(number)) for number in range(_CALLS)), "all work")
        own_postgres.stop()
        wait_until(lambda: not service.is_healthy(), "the service knows that the database is away")
        go_on.touch()
        # These begin while it is away.
        coming = [callers.submit(_call, service, effects, number, go_on) for number in range(_CALLS, 2 * _CALLS)]
        own_postgres.start()
        answers = [*map(_answer, working)]
        late = [*map(_answer, coming)]
    assert [status for status, _ in answers] == [200] * _CALLS
    assert [count_of(effects, str(number)) for number in range(_CALLS)] == [1] * _CALLS
    for number, (status, result) in enumerate(late, _CALLS):
        assert status == 200 or result.error_type is ErrorType.UNAVAILABLE, result
        assert count_of(effects, str(number)) == (1 if status == 200 else 0)
    wait_until(service.is_healthy, "the service is healthy again")
    assert run_tool(service.http, "calculator", {"expression": "6 * 7"})[0] == 200
    assert PASSWORD not in service.output
    _kill_and_halt(own_postgres, service)


def _kill_and_halt(own_postgres: PostgresServer, service: ServiceProcess) -> None:
    """Kills and halts the database; the service reports it, and uses it again afterwards."""
    assert service.http.get("/tools").is_success
    own_postgres.kill()
    assert service.http.get("/tools").status_code == httpx.codes.SERVICE_UNAVAILABLE
    own_postgres.start()
    assert service.http.get("/tools").is_success, "the first request after its return succeeds"
    with own_postgres.halted():
        assert service.http.get("/tools").status_code == httpx.codes.SERVICE_UNAVAILABLE
    wait_until(service.is_healthy, "the service is healthy again")
    assert run_tool(service.http, "calculator", {"expression": "6 * 7"})[0] == 200


def _call(service: ServiceProcess, effects: Path, number: int, go_on: Path) -> tuple[int, ToolResult]:
    return run_tool(service.http, "crowded", {"effects": str(effects), "line": str(number), "until": str(go_on)}, f"call {number}")


def _answer(call: Future[tuple[int, ToolResult]]) -> tuple[int, ToolResult]:
    return call.result(150)
