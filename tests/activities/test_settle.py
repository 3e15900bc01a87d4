"""A call ends even if its end cannot be checked or recorded for an unforeseen reason."""

import shutil
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.settle import Settle
from engine.calling.attempt import MAX_TRIES
from engine.calls.effects.ended import Places, SettledCalls
from engine.calls.endings import STEP_FAULTY
from engine.calls.settlement import Settlements
from engine.calls.steps import Steps, StepTrace
from engine.registry.registry import ToolRegistry
from engine.store.calls import CallTable
from engine.store.claims import Claim
from engine.store.database import Database
from engine.store.lost_steps import LostStepTable
from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from tests.calls import parts
from tests.disks import fill, tiny_disk
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.records import CallRecord, Event
from toolagent.core.calls.results import reason_of
from toolagent.core.failures import StoreUnwritableError
from toolagent.validation.versions import NoSuchVersion
from toolagent_service.contracts.steps import Finished, SettleRequest

PLAN = parts.PLAN.model_copy(update={"params": {"token": "sesame"}})
REQUEST = SettleRequest(plan=PLAN, outcome=Finished(output="a lot"), workflow_id="w", run_id="r")


class FaultyRegistry(ToolRegistry):
    """Fails as at a tool with an unreadable row."""

    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        raise ZeroDivisionError(tool_id, wanted)


class FaultyCalls(CallTable):
    """Records nothing."""

    async def settle(
        self,
        record: CallRecord,
        result: ToolResult,
        what_happened: tuple[Event, ...],
        claim: Claim | None = None,
        *,
        is_unclaimed: bool = False,
    ) -> ToolResult:
        raise ZeroDivisionError(record, result, what_happened, claim, is_unclaimed)


def settling(database: Database, trace: Path, *, registry: type[ToolRegistry] = ToolRegistry, calls: type[CallTable] = CallTable) -> Settle:
    known = registry(ToolTable(database), RouteTable(database))
    return Settle(Settlements(known, Places(calls(database), SettledCalls())), Steps(StepTrace(trace), LostStepTable(database)))


async def attempts(settle: Settle) -> list[ToolResult | Exception]:
    """The outcome of each attempt, until Temporal would make no other; at most twenty."""
    came: list[ToolResult | Exception] = []
    while len(came) < 20:
        try:
            came.append(await ActivityEnvironment().run(settle.settle, REQUEST))
        except (ZeroDivisionError, ApplicationError) as error:
            came.append(error)
        if not isinstance(came[-1], ZeroDivisionError):
            break
    return came


async def test_a_call_that_cannot_be_settled_for_a_reason_of_ours_is_recorded_without_its_output(
    database: Database, tmp_path: Path
) -> None:
    *before, last = await attempts(settling(database, tmp_path / "steps", registry=FaultyRegistry))
    assert isinstance(last, ToolResult)
    assert (len(before), last.error_type, last.result, reason_of(last)) == (MAX_TRIES, ErrorType.EXECUTION_ERROR, None, STEP_FAULTY)
    record = await CallTable(database).get(PLAN.call_id)
    assert record is not None
    assert (record.result, record.params) == (last, {})


async def test_a_call_whose_end_cannot_be_recorded_at_all_is_not_settled_for_ever(database: Database, tmp_path: Path) -> None:
    *before, last = await attempts(settling(database, tmp_path / "steps", registry=FaultyRegistry, calls=FaultyCalls))
    assert isinstance(last, ApplicationError)
    assert (len(before), last.non_retryable, last.type) == (2 * MAX_TRIES - 1, True, "ZeroDivisionError")


async def test_a_call_on_a_full_disk_is_settled_as_it_ended_when_there_is_room_again(empty_database: Path, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "tiny", "2m") as disk:
        database = Database(f"sqlite+aiosqlite:///{shutil.copyfile(empty_database, disk / 'tool-agent.db')}")
        settle = settling(database, tmp_path / "steps")
        outcome = Finished(output="x" * 200_000)
        await database.check()
        fill(disk / "filler")
        for _ in range(2 * MAX_TRIES + 1):
            with pytest.raises(StoreUnwritableError) as failure:
                await ActivityEnvironment().run(settle.settle, REQUEST.model_copy(update={"outcome": outcome}))
            assert failure.value.cause == "disk_full"
        (disk / "filler").unlink()
        result = await ActivityEnvironment().run(settle.settle, REQUEST.model_copy(update={"outcome": outcome}))
        record = await CallTable(database).get(PLAN.call_id)
        await database.close()
    assert result.status == "success"
    assert record is not None
    assert record.result is not None
    assert record.result.result == outcome.output
