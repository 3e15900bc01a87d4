"""Steps of calls during which their process died or froze."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.calls import steps as module
from engine.calls.endings import STEP_LOST
from engine.calls.steps import MOST_LOST, Steps, StepTrace
from engine.store.database import Database
from engine.store.lost_steps import LostStepTable
from tests.calls.conftest import Desk
from tests.copies import start_text
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent.core.calls.results import reason_of
from toolagent_service.contracts.steps import AdmitRequest, Admitted, Finished, SettleRequest

CALL = "call-12345678"
_DIES = """
import os, signal, sys
from pathlib import Path
from engine.calls.steps import StepTrace

trace = StepTrace(Path(sys.argv[1]))
with trace.under_way("admit ended"):
    pass
with trace.under_way(sys.argv[2]):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "steps"


async def lost(steps: Steps) -> int:
    async with steps.under_way("admit", CALL) as times:
        return times


async def test_what_a_killed_process_was_in_is_counted_by_the_next_one(database: Database, trace: Path) -> None:
    table = LostStepTable(database)
    for times in (1, 2):
        killed, said = start_text(_DIES, str(trace), f"admit {CALL}")
        with said:
            assert killed.wait() == -9
        assert await lost(Steps(StepTrace(trace), table)) == times
    assert await table.counts() == {f"admit {CALL}": 2}
    # A process that ended in peace leaves nothing, and other hosts see what is counted.
    assert StepTrace(trace).left == ()
    assert await lost(Steps(StepTrace(trace.with_name("of another host")), table)) == 2


async def test_a_step_in_which_nothing_else_went_on_is_counted(database: Database, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FROZEN_S", 0.2)
    steps = Steps(StepTrace(trace), LostStepTable(database))
    async with steps.under_way("admit", CALL):
        time.sleep(0.3)  # noqa: ASYNC251 - it stands still
    assert await lost(steps) == 1


async def test_a_step_that_only_waits_for_long_is_not(database: Database, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock))
    monkeypatch.setattr(module, "_BEAT_S", 0.0)
    steps = Steps(StepTrace(trace), LostStepTable(database))
    async with steps.under_way("admit", CALL):
        while clock < 100.0 + 3 * module.FROZEN_S:
            clock += 0.9 * module.FROZEN_S
            for _ in range(3):
                await asyncio.sleep(0)
    assert await lost(steps) == 0


async def test_of_calls_that_were_lost_together_only_one_can_be_lost_again(database: Database, trace: Path) -> None:
    table = LostStepTable(database)
    await table.add(["admit innocent", "admit guilty"])
    steps, others = Steps(StepTrace(trace), table), asyncio.Event()

    async def admitted(call_id: str) -> None:
        async with steps.under_way("admit", call_id):
            await others.wait()

    async with asyncio.timeout(30):
        waiting = [asyncio.create_task(admitted(call_id)) for call_id in ("guilty", "innocent", "new")]
        while b"new" not in await asyncio.to_thread(trace.read_bytes):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
        assert {*StepTrace(trace).left} == {"admit guilty", "admit new"}
        others.set()
        await asyncio.gather(*waiting)


@pytest.mark.promise("accepted-means-ended")
async def test_an_admission_that_was_lost_twice_ends_the_call_with_a_record(desk: Desk) -> None:
    request = AdmitRequest(call=ToolCall(tool_id="pure"), call_id=CALL, workflow_id="w", run_id="r")
    result = (await desk.admissions.give_up(request, MOST_LOST)).result
    assert (result.error_type, reason_of(result)) == (ErrorType.EXECUTION_ERROR, STEP_LOST)
    record = await desk.calls.get(CALL)
    assert record is not None
    assert record.result == result


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Finished(output={"image": "file_1"}), {"reason": STEP_LOST, "lost_attempts": 2, "outcome": "executed"}),
        (Finished(error=ToolError(type=ErrorType.UNAVAILABLE, message="Nobody took it.")), {"sent": False}),
    ],
)
@pytest.mark.promise("accepted-means-ended")
async def test_a_settlement_that_was_lost_twice_says_truly_whether_the_tool_ran(desk: Desk, outcome: Finished, said: object) -> None:
    (desk.root / "a.png").write_bytes(b"x")
    admission = await desk.admit("stitch", {"images": ["a.png"]})
    assert isinstance(admission, Admitted)
    request = SettleRequest(plan=admission.plan, outcome=outcome, workflow_id="w", run_id="r")
    result = await desk.settlements.give_up(request, MOST_LOST)
    assert result.error is not None
    assert result.error.details == said
    record = await desk.calls.get(CALL)
    assert record is not None
    assert record.result == result
