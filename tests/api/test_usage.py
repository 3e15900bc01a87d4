"""`GET /tools/{tool_id}/usage` and `GET /calls`."""

import httpx
import pytest

from engine.store.database import Database
from tests.api.conftest import House
from tests.store.test_usage import record


async def test_a_tools_use_is_told(stocked: House, database: Database) -> None:
    await record(database, 1, 0.5)
    answer = await stocked.http.get("/tools/echo/usage")
    assert answer.status_code == httpx.codes.OK
    assert (answer.json()["calls"], answer.json()["p95_s"]) == (1, 0.5)


@pytest.mark.parametrize(
    ("path", "status"), [("nowhere/usage", 404), ("echo/usage?hours=0", 422), ("echo/usage?hours=x", 422), ("echo/usage?hours=1", 200)]
)
async def test_what_cannot_be_told_is_refused(stocked: House, path: str, status: int) -> None:
    assert (await stocked.http.get(f"/tools/{path}")).status_code == status


async def test_the_calls_of_a_conversation_are_told(stocked: House, database: Database) -> None:
    await record(database, 1, 0.5, said_in="conv_001")
    answer = await stocked.http.get("/calls?conversation_id=conv_001")
    assert answer.status_code == httpx.codes.OK
    assert (answer.json()["tool_usage"], answer.json()["calls"][0]["call_id"]) == ({"echo": 1}, "call-echo-00000001")


@pytest.mark.parametrize(
    "query", ["", "?limit=5", "?conversation_id=", "?tool_id=No Tool", "?tool_id=echo&limit=0", "?conversation_id=a%00"]
)
async def test_calls_of_nobody_are_refused(stocked: House, query: str) -> None:
    assert (await stocked.http.get(f"/calls{query}")).status_code == httpx.codes.UNPROCESSABLE_ENTITY
