"""`GET /tools/{tool_id}/usage`."""

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
