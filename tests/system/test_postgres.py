"""The whole service on PostgreSQL: a call of each kind, and no connection held while a tool works."""

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.postgres import PostgresServer, postgres_database
from tests.system.effects import count_of
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult

pytestmark = pytest.mark.timeout(300)

_POOL = 2
_SLOW_CALLS = 12


@pytest.fixture(scope="module")
def service(postgres: PostgresServer, catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    with postgres_database(postgres) as url:
        settings = {"DATABASE_URL": url, "DATABASE_POOL_SIZE": str(_POOL), "BUCKET_LIMITS": f'{{"default": {_SLOW_CALLS}}}'}
        service = ServiceProcess(tmp_path_factory.mktemp("on-postgres"), catalog, **settings)
        service.start()
        yield service
        service.end()
        service.wait_until_nothing_is_left()


def test_a_quick_one_a_slow_one_and_a_refused_one(service: ServiceProcess, effects: Path) -> None:
    status, result = run_tool(service.http, "calculator", {"expression": "6 * 7"})
    assert (status, result.result) == (200, {"expression": "6 * 7", "result": 42})
    assert run_tool(service.http, "once", {"effects": str(effects)})[0] == 200
    assert run_tool(service.http, "versatile", {"mode": "fail"})[1].error_type is ErrorType.EXECUTION_ERROR
    assert run_tool(service.http, "nowhere", {})[0] == 404
    assert run_tool(service.http, "calculator", {"expression": 7})[0] == 422
    assert count_of(effects) == 1


@pytest.mark.promise("no-connection-held")
def test_while_a_dozen_calls_are_at_work_two_connections_are_enough_for_everybody_else(service: ServiceProcess, effects: Path) -> None:
    until, lines = effects.with_name("until"), {str(number) for number in range(_SLOW_CALLS)}

    def call(line: str) -> tuple[int, ToolResult]:
        return run_tool(service.http, "crowded", {"effects": str(effects), "line": line, "until": str(until)})

    with ThreadPoolExecutor(_SLOW_CALLS) as callers:
        answers = [callers.submit(call, line) for line in lines]
        try:
            # None of them ends before `until` is there: whoever held a connection would keep it from the others.
            wait_until(lambda: effects.exists() and {*effects.read_text("ascii").split()} == lines, "all are at work", 90.0)
            status, result = run_tool(service.http, "calculator", {"expression": "6 * 7"})
            assert (status, result.status, service.is_healthy()) == (200, "success", True)
            assert service.http.get("/tools").is_success
            assert not any(answer.done() for answer in answers)
        finally:
            until.touch()
    assert [answer.result()[0] for answer in answers] == [200] * _SLOW_CALLS
    assert len(effects.read_text("ascii").split()) == _SLOW_CALLS


def test_the_pool_is_as_large_as_it_was_set(service: ServiceProcess, postgres: PostgresServer) -> None:
    assert service.is_healthy()
    assert 1 <= int(postgres.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tool-agent%'")) <= _POOL


@pytest.mark.parametrize(
    ("strange", "as_caller", "as_parameter"),
    [
        pytest.param("a\0b", 422, 200, id="a NUL"),
        pytest.param("\ud800", 400, 400, id="half a pair"),
        pytest.param("\U0001f600", 200, 200, id="beyond the basic plane"),
        pytest.param("x" * 200, 200, 200, id="as long as may be"),
    ],
)
def test_what_postgres_cannot_write_is_refused_or_kept_out_of_it(
    service: ServiceProcess, strange: str, as_caller: int, as_parameter: int
) -> None:
    caller: JsonValue = {"caller_id": strange, "conversation_id": strange}
    assert _status(service, {"tool_id": "echo", "params": {"message": "hi"}, "caller": caller}) == as_caller
    assert _status(service, {"tool_id": "echo", "params": {"message": strange}}) == as_parameter


def _status(service: ServiceProcess, body: dict[str, JsonValue]) -> int:
    """The status of a call sent in ASCII: JSON can express a lone surrogate, UTF-8 cannot."""
    return service.http.post("/run_tool", content=json.dumps(body), headers={"Content-Type": "application/json"}).status_code
