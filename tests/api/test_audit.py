"""`GET /audit`: the runs of sandboxed programs."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.runtimes.auditing.audit import AuditLog
from tests.api.conftest import House, browse, with_doors
from toolagent.contracts.audit import AuditEntry, AuditPage

AT = datetime(2026, 3, 26, 10, 30, tzinfo=UTC)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """SQLite only, because the kind of database makes no difference here."""
    return sqlite_url


@pytest.fixture
def audited(house: House) -> House:
    log = house.dependencies.audit
    assert isinstance(log, AuditLog)
    for number, tool_id in enumerate(("echo", "core:run", "echo")):
        log.note(AuditEntry(at=AT + timedelta(hours=number), action="call", tool_id=tool_id))
    log.close()
    return house


async def hours(house: House, query: str) -> list[int]:
    answer = await house.http.get(f"/audit{query}")
    assert answer.status_code == 200, answer.text
    return [(entry.at - AT).seconds // 3600 for entry in AuditPage.model_validate_json(answer.content).entries]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [2, 1, 0]),
        ("?tool_id=echo", [2, 0]),
        ("?tool_id=core:run", [1]),
        ("?since=2026-03-26T11:30:00Z", [2, 1]),
        ("?limit=1", [2]),
    ],
)
async def test_entries_are_read_by_tool_and_time(audited: House, query: str, expected: list[int]) -> None:
    assert await hours(audited, query) == expected


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?limit=0", "limit"),
        ("?limit=1001", "limit"),
        ("?since=yesterday", "since"),
        ("?since=0.5", "since"),
        ("?since=1774521000", "since"),
        ("?since=2026-03-26", "since"),
        ("?tool_id=A", "tool_id"),
    ],
)
async def test_a_bad_question_names_its_field(audited: House, query: str, field: str) -> None:
    answer = await audited.http.get(f"/audit{query}")
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (422, [field])


async def test_the_key_is_wanted_where_there_is_one(audited: House) -> None:
    async with browse(with_doors(audited, api_key="key")) as http:
        assert (await http.get("/audit")).status_code == 401
        assert (await http.get("/audit", headers={"Authorization": "Bearer key"})).status_code == 200
