"""Quarantined inputs, over HTTP."""

from typing import TYPE_CHECKING

from pydantic import JsonValue

from engine.store.database import Database
from engine.store.quarantine import QuarantineTable, input_of
from tests.store.test_quarantine import ENDED, POISON, record
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import RemoteSource

if TYPE_CHECKING:
    from tests.api.conftest import House


OTHER: dict[str, JsonValue] = {"numbers": [1]}


async def test_they_are_listed_and_lifted_one_or_all(house: "House", database: Database) -> None:
    await house.registry.register(ToolManifest(tool_id="t", name="T"), (RemoteSource(remote_url="http://127.0.0.1:1/"),))
    assert (await house.http.get("/tools/t/quarantine")).json() == {"inputs": []}
    table = QuarantineTable(database)
    for number, params in enumerate((POISON, POISON, OTHER, OTHER)):
        await table.note_crash(record(number, params), ENDED)
    shown = (await house.http.get("/tools/t/quarantine")).json()["inputs"]
    assert {(one["input"], one["crashes"], one["error"]) for one in shown} == {
        (input_of(POISON), 2, ENDED),
        (input_of(OTHER), 2, ENDED),
    }
    assert (await house.http.delete("/tools/t/quarantine", params={"input": input_of(POISON)})).json() == {"lifted": 1}
    assert (await house.http.delete("/tools/t/quarantine")).json() == {"lifted": 1}
    assert (await house.http.get("/tools/t/quarantine")).json() == {"inputs": []}


async def test_an_unknown_tool_and_what_is_no_input_are_said(house: "House") -> None:
    for method in ("GET", "DELETE"):
        answer = await house.http.request(method, "/tools/nobody/quarantine")
        assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (404, "tool_not_found")
    answer = await house.http.delete("/tools/t/quarantine", params={"input": "x"})
    assert answer.status_code == 422
    assert "64 hex digits" in answer.text
