"""The client of a front door with a lane: a call that is refused after its door had accepted it."""

import pytest
from temporalio.client import Client

from api.client.guarded_calls import GuardedCalls
from api.client.lane_calls import LaneCalls
from api.client.recording import Recording
from engine.calling.door import Door, DoorTables
from engine.calling.lane import Lane
from engine.calls.usual_durations import UsualDurations
from engine.store.calls import CallTable
from engine.store.claims import ClaimTable
from engine.store.database import Database
from tests.calls.test_lane import Stage
from tests.parts import tool_registry
from toolagent.client.failures import CallRefusedError
from toolagent.contracts.calls import CallMode, ToolCall
from toolagent.core.failures import StoreUnwritableError
from toolagent_service.contracts.lanes import LaneMode

ID = "call-12345678"


@pytest.mark.parametrize("mode", CallMode)
async def test_who_is_told_that_nothing_was_done_has_nothing_accepted(database: Database, mode: CallMode) -> None:
    looks = iter([None, StoreUnwritableError("disk_full", "Its disk is full.", "")])

    def require_room() -> None:
        if (failure := next(looks)) is not None:
            raise failure

    stage, claims = Stage(), ClaimTable(database)
    tables = DoorTables(claims, CallTable(database), tool_registry(database), UsualDurations())
    door = Door("own", Lane(stage, stage.send, stage.move), lambda _: False, tables, LaneMode.HARMLESS)
    unasked = await Client.connect("127.0.0.1:1", lazy=True)
    calls = LaneCalls(GuardedCalls(unasked, Recording((), require_room), patience_s=1.0), door)
    asked = calls.run if mode is CallMode.SYNC else calls.start
    with pytest.raises(CallRefusedError) as refused:
        await asked(ToolCall(tool_id="echo", mode=mode), ID)
    assert refused.value.result.error is not None
    assert refused.value.result.error.details == {"cause": "disk_full", "sent": False}
    assert await claims.get(ID) is None
