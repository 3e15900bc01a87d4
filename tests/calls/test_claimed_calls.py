"""Calls that a front door makes or made: what their workflow is told at its admission."""

from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue

from engine.store.claims import NOBODY, WORKFLOW, Claim, ClaimTable
from engine.store.clock import now
from engine.store.database import Database
from engine.store.doors import DoorTable
from toolagent.contracts.calls import ErrorType, ToolCall
from toolagent.contracts.lanes import LaneFigures
from toolagent.contracts.records import CallRecord
from toolagent.core.calls.idempotency import fingerprint
from toolagent_service.contracts.steps import Admitted, Answered, Held, Placement

if TYPE_CHECKING:
    from tests.calls.conftest import Desk

ID = "call-12345678"
CALL = ToolCall(tool_id="pure", params={})
DOOR = Claim(ID, fingerprint(CALL), "door-a")


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_call_of_a_door_that_lives_goes_there_also_when_it_is_to_end(
    desk: "Desk", database: Database, *, is_cancelled: bool
) -> None:
    claims = ClaimTable(database)
    await DoorTable(database, 3600.0).beat(DOOR.owner, None, LaneFigures())
    await claims.take(DOOR, CALL)
    if is_cancelled:
        await claims.cancel(ID)
    admission = await desk.admit("pure")
    assert admission == Held(door="door-a")


@pytest.mark.parametrize("owner", ["door-a", NOBODY])
async def test_a_call_of_who_is_gone_or_cannot_make_it_is_made_by_hosts(desk: "Desk", database: Database, owner: str) -> None:
    claims = ClaimTable(database)
    await claims.take(Claim(ID, DOOR.fingerprint, owner), CALL)
    admission = await desk.admit("pure")
    assert isinstance(admission, Admitted)
    assert admission.plan.placement == Placement(queue="default")
    held = await claims.get(ID)
    assert held is not None
    assert (held.owner, held.number) == (WORKFLOW, 2)


@pytest.mark.parametrize(
    ("was_sent", "details"), [(False, {"sent": False}), (True, {"sent": True, "outcome": "unknown"})], ids=["not sent", "sent"]
)
async def test_a_cancelled_call_whose_door_is_gone_ends_and_says_whether_it_was_sent(
    desk: "Desk", database: Database, *, was_sent: bool, details: JsonValue
) -> None:
    claims = ClaimTable(database)
    await claims.take(DOOR, CALL)
    if was_sent:
        known = {"tool_id": "pure", "version": "1.0.0", "workflow_id": "w", "run_id": "r", "created_at": now()}
        record = CallRecord.model_validate({"call_id": ID, "fingerprint": DOOR.fingerprint, **known})
        assert await desk.calls.mark_sent(record, claim=DOOR) == 1
    await claims.cancel(ID)
    admission = await desk.admit("pure")
    assert isinstance(admission, Answered)
    assert admission.result.error is not None
    assert (admission.result.error.type, admission.result.error.details) == (ErrorType.CANCELLED, details)
    assert await claims.get(ID) is None
