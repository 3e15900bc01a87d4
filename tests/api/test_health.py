"""GET /health, and the answers when a part of the service fails."""

import asyncio
from pathlib import Path

import pytest
import structlog

from api.ports import LackingError, NotReadyError
from api.views import readiness
from api.views.readiness import Remembered
from engine.store.database import Database
from tests.api.conftest import House, browse, with_doors
from tests.parts import tool_registry
from toolagent.contracts.lanes import LaneCounts
from toolagent.contracts.routes import ToolRoute


async def fine() -> None:
    return


async def broken() -> None:
    raise ConnectionError("Connection refused")


async def wordless() -> None:
    raise ConnectionError


async def explained() -> None:
    raise NotReadyError("The disk is full.")


async def lacking() -> None:
    raise LackingError("Docker tools are unavailable: no Docker engine answers.")


async def silent() -> None:
    await asyncio.Event().wait()


async def test_all_is_well(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_BOUND_S", 60.0)
    async with browse(with_doors(house, checks={"database": house.dependencies.checks["database"], "temporal": fine})) as http:
        answer = await http.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "checks": {"database": "ok", "temporal": "ok"}})


async def test_what_only_some_tools_need_is_named_and_the_rest_is_well(house: House) -> None:
    async with browse(with_doors(house, checks={"temporal": fine, "docker": lacking})) as http:
        answer = await http.get("/health")
    told = {"status": "ok", "checks": {"temporal": "ok", "docker": "Docker tools are unavailable: no Docker engine answers."}}
    assert (answer.status_code, answer.json()) == (200, told)


async def test_what_is_not_ready_is_named_with_its_reason(house: House) -> None:
    many = [f"worker {number}" for number in range(60)]
    checks = {"temporal": broken, **dict.fromkeys(many, silent), "database": fine, "disk": wordless, "files": explained}
    async with browse(with_doors(house, checks=checks)) as http:
        answer = await asyncio.wait_for(http.get("/health"), 30)  # one after the other would take 48 s
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "unavailable",
        "checks": {
            "temporal": "does not answer (ConnectionError)",
            **dict.fromkeys(many, "no answer within 0.8 s"),
            "database": "ok",
            "disk": "does not answer (ConnectionError)",
            "files": "The disk is full.",
        },
    }


async def test_a_database_that_does_not_answer_is_a_503(house: House, tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'missing' / 'no.db'}")
    registry = tool_registry(database)
    async with browse(with_doors(house, registry=registry)) as http:
        answer = await http.get("/tools")
    assert (answer.status_code, answer.json()["type"], answer.headers["retry-after"]) == (503, "unavailable", "1")
    assert str(tmp_path) not in answer.text
    await database.close()


class BrokenRoutes:
    async def list_all(self) -> tuple[ToolRoute, ...]:
        raise ArithmeticError("secret internals")

    async def get(self, tool_id: str) -> ToolRoute | None:
        raise ArithmeticError(tool_id)


async def test_what_nobody_expected_is_logged_and_not_told(house: House) -> None:
    with structlog.testing.capture_logs() as logs:
        async with browse(with_doors(house, routes=BrokenRoutes())) as http:
            answer = await http.get("/tools")
    assert (answer.status_code, answer.json()["type"]) == (500, "internal_error")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    (entry,) = logs
    assert (entry["event"], entry["method"], entry["path"]) == ("request_failed", "GET", "/tools")
    assert isinstance(entry["exc_info"], ArithmeticError)


@pytest.mark.parametrize("checks", [{}])
async def test_a_service_without_parts_is_well(house: House, checks: dict[str, object]) -> None:
    async with browse(with_doors(house, checks=checks)) as http:
        assert (await http.get("/health")).json() == {"status": "ok", "checks": {}}


async def outspoken() -> None:
    raise OSError("connection to 10.0.0.3 as user admin failed")


async def test_what_a_driver_says_is_logged_and_not_told(house: House, tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'missing' / 'no.db'}")
    with structlog.testing.capture_logs() as logs:
        async with browse(with_doors(house, checks={"temporal": outspoken, "database": database.check, "worker": fine})) as http:
            answer = await http.get("/health")
    await database.close()
    assert answer.json()["checks"] == {
        "temporal": "does not answer (OSError)",
        "database": "The database cannot be used: its file cannot be opened.",
        "worker": "ok",
    }
    assert [(entry["event"], entry["check"], entry["error"]) for entry in logs] == [
        ("check_failed", "temporal", "OSError"),
        ("check_failed", "database", "StoreUnwritableError"),
    ]
    assert logs[0]["reason"] == "connection to 10.0.0.3 as user admin failed"


class Counted:
    """A check that waits until the test releases it."""

    def __init__(self) -> None:
        self.times, self.may_go_on = 0, asyncio.Event()

    async def __call__(self) -> None:
        self.times += 1
        await self.may_go_on.wait()
        raise NotReadyError("The disk is full.")


async def test_a_check_is_made_once_for_all_who_ask_and_its_outcome_is_told_when_it_is_there(house: House) -> None:
    counted = Counted()
    async with browse(with_doors(house, checks={"state": Remembered(counted)})) as http:
        async with asyncio.timeout(30):
            answers = await asyncio.gather(*(http.get("/health") for _ in range(5)))
        assert {answer.json()["checks"]["state"] for answer in answers} == {"no answer within 0.8 s"}
        counted.may_go_on.set()
        for _ in range(5):
            assert (await http.get("/health")).json()["checks"]["state"] == "The disk is full."
    assert counted.times == 1


async def test_a_check_that_takes_its_time_is_as_well_as_it_was_a_moment_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_FRESH_S", 0.0)
    going_on = asyncio.Event()
    going_on.set()

    async def wait() -> None:
        await going_on.wait()

    check = Remembered(wait)
    await check()
    going_on.clear()
    await check()
    monkeypatch.setattr(readiness, "_PATIENCE_S", 0.0)
    with pytest.raises(TimeoutError):
        await check()
    going_on.set()
    await check()


async def test_the_figures_of_the_doors_lane_are_told(house: House) -> None:
    figures = LaneCounts(calls=3, moved=1, waiting=2, per_second=0.3)
    async with browse(with_doors(house, checks={}, lane_figures=lambda: figures)) as http:
        answer = await http.get("/health")
    assert answer.json()["lane"] == {"calls": 3, "moved": 1, "waiting": 2, "per_second": 0.3}
