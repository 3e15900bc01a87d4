"""The attempt records the end of a call if it can do so at once; otherwise the workflow does."""

import asyncio
from pathlib import Path

import pytest

from engine.calling.queued_call import PromptSettlement
from engine.store.calls import CallTable
from engine.store.claims import Claim
from engine.store.database import Database
from engine.store.lost_steps import LostStepTable
from tests.calls.parts import PLAN
from tests.parts import prompt_settlement, tool_registry
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.records import CallRecord, Event
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.steps import CallRequest, Finished

REQUEST = CallRequest(plan=PLAN, workflow_id="w", run_id="r")
DONE = Finished(output="a lot")


class Slow(CallTable):
    """Settlements that are slow, or fail."""

    def __init__(self, database: Database, fault: Exception | None = None) -> None:
        super().__init__(database)
        self.begun, self.takes_s, self._fault = asyncio.Event(), 0.05, fault

    async def settle(
        self,
        record: CallRecord,
        result: ToolResult,
        what_happened: tuple[Event, ...],
        claim: Claim | None = None,
        *,
        is_unclaimed: bool = False,
    ) -> ToolResult:
        self.begun.set()
        await asyncio.sleep(self.takes_s)
        if self._fault is not None:
            raise self._fault
        return await super().settle(record, result, what_happened, claim, is_unclaimed=is_unclaimed)


def settling(database: Database, folder: Path, calls: CallTable | None = None) -> PromptSettlement:
    return prompt_settlement(tool_registry(database), calls or CallTable(database), database, folder / "steps")


async def test_the_result_is_recorded_under_the_ids_of_its_workflow_and_handed_on_without_the_output(
    database: Database, tmp_path: Path
) -> None:
    told = (await settling(database, tmp_path).settled(REQUEST, DONE)).settled
    record = await CallTable(database).get(PLAN.call_id)
    assert record is not None
    assert record.result is not None
    assert (record.workflow_id, record.run_id, record.result.result) == ("w", "r", "a lot")
    assert told == record.result.model_copy(update={"result": None})


async def test_an_earlier_result_stands_and_comes_whole(database: Database, tmp_path: Path) -> None:
    settlement = settling(database, tmp_path)
    await settlement.settled(REQUEST, DONE)
    unknown = Finished(error=ToolError(type=ErrorType.EXECUTION_ERROR, message="Its end is not known."))
    told = (await settlement.settled(REQUEST, unknown)).settled
    assert told is not None
    assert (told.status, told.result) == ("success", "a lot")


async def test_who_names_no_workflow_settles_the_call_itself(database: Database, tmp_path: Path) -> None:
    assert await settling(database, tmp_path).settled(CallRequest(plan=PLAN), DONE) == DONE
    assert await CallTable(database).get(PLAN.call_id) is None


@pytest.mark.parametrize("fault", [StoreUnavailableError("It is away."), ZeroDivisionError("Nobody foresaw it.")])
async def test_what_cannot_be_recorded_is_left_to_the_workflow(database: Database, tmp_path: Path, fault: Exception) -> None:
    assert await settling(database, tmp_path, Slow(database, fault)).settled(REQUEST, DONE) == DONE


async def test_what_takes_too_long_to_record_is_left_to_the_workflow(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.calling.queued_call._PATIENCE_S", 0.1)
    calls = Slow(database)
    calls.takes_s = 60.0
    assert await asyncio.wait_for(settling(database, tmp_path, calls).settled(REQUEST, DONE), 10) == DONE


async def test_how_the_tool_wrote_its_answer_is_handed_on_once(database: Database, tmp_path: Path) -> None:
    outcome = await settling(database, tmp_path).settled(REQUEST, DONE.model_copy(update={"shown": ["a picture"]}))
    assert outcome.settled is not None
    assert (outcome.shown, outcome.settled.metadata["mcp"]) == (None, ["a picture"])


async def test_what_has_killed_a_process_before_is_left_to_the_workflow(database: Database, tmp_path: Path) -> None:
    await LostStepTable(database).add([f"settle {PLAN.call_id}"])
    assert await settling(database, tmp_path).settled(REQUEST, DONE) == DONE
    assert await CallTable(database).get(PLAN.call_id) is None


async def test_a_cancel_while_it_is_recorded_comes_too_late(database: Database, tmp_path: Path) -> None:
    calls = Slow(database)
    task = asyncio.create_task(settling(database, tmp_path, calls).settled(REQUEST, DONE))
    await asyncio.wait_for(calls.begun.wait(), 10)
    task.cancel()
    told = (await task).settled
    assert told is not None
    assert told.status == "success"
