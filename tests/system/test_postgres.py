"""The whole service on PostgreSQL: a call of each kind, restarts, keys, and no connection held while a tool works."""

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.postgres import PostgresServer, postgres_database
from tests.system.effects import count_of
from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.tasks import TaskState
from toolagent.core.results import IDEMPOTENCY_CONFLICT, reason_of

pytestmark = pytest.mark.timeout(300)

_POOL = 2
_SLOW_CALLS = 50


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
def test_fifty_slow_calls_at_once_need_no_more_than_two_connections(service: ServiceProcess, effects: Path) -> None:
    def call(number: int) -> tuple[int, ToolResult]:
        return run_tool(service.http, "crowded", {"effects": str(effects), "line": str(number), "seconds": 2})

    with ThreadPoolExecutor(_SLOW_CALLS) as callers:
        answers = [*callers.map(call, range(_SLOW_CALLS))]
    assert [status for status, _ in answers] == [200] * _SLOW_CALLS
    assert sorted(effects.read_text("ascii").split(), key=int) == [str(number) for number in range(_SLOW_CALLS)]


def test_the_pool_is_as_large_as_it_was_set(service: ServiceProcess, postgres: PostgresServer) -> None:
    assert service.is_healthy()
    assert 1 <= int(postgres.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tool-agent%'")) <= _POOL


def test_a_key_is_one_call_also_after_a_restart(service: ServiceProcess, effects: Path) -> None:
    params: dict[str, JsonValue] = {"effects": str(effects), "seconds": 0.2}
    key = "on-postgres"
    with ThreadPoolExecutor(2) as callers:
        begun = [callers.submit(run_tool, service.http, "once", params, key) for _ in range(2)]
        first, second = (call.result(60) for call in begun)
    assert (first[0], first) == (200, second)
    assert service.stop() == 0
    service.start()
    assert run_tool(service.http, "once", params, key) == first
    status, other = run_tool(service.http, "once", {**params, "line": "other"}, key)
    assert (status, reason_of(other)) == (409, IDEMPOTENCY_CONFLICT)
    assert service.task(first[1].call_id).status is TaskState.COMPLETED
    assert (count_of(effects), count_of(effects, "other")) == (1, 0)


@pytest.mark.parametrize("strange", ["a\0b", "\ud800", "\U0001f600", "x" * 200])
def test_a_strange_caller_is_no_failure_of_ours(service: ServiceProcess, strange: str) -> None:
    caller: JsonValue = {"caller_id": strange, "conversation_id": strange}
    assert _status(service, {"tool_id": "echo", "params": {"message": "hi"}, "caller": caller}) in {200, 400, 422}
    assert _status(service, {"tool_id": "echo", "params": {"message": strange}}) in {200, 400, 422}


def _status(service: ServiceProcess, body: dict[str, JsonValue]) -> int:
    """Of a call that is sent in ASCII: a lone surrogate can be written in JSON, but not in UTF-8."""
    return service.http.post("/run_tool", content=json.dumps(body), headers={"Content-Type": "application/json"}).status_code
