"""A fast call is made and settled at its admission; any other goes to a queue."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.admit import Admit
from engine.calling.attempt import MAX_TRIES
from engine.calling.fast_call import BegunCalls, FastCall
from engine.calling.intake import Intake
from engine.calls.checks.asked import CallLimits
from engine.calls.effects.ended import Places, SettledCalls
from engine.calls.file_parameters import FileParameters
from engine.calls.large_results import LargeResults
from engine.calls.settlement import Settlements
from engine.calls.steps import Steps, StepTrace
from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.lost_steps import LostStepTable
from tests.calls.parts import ANSWER, CALL_ID, admissions_of, exchange_of, files_of, serving, supervising
from tests.parts import begun_calls, prompt_settlement, tool_registry
from toolagent.contracts.calls import ToolCall
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered


@dataclass
class Tool:
    """A raw HTTP server that answers, or drops the connection."""

    drops: bool = False
    requests: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        if not self.drops:
            writer.write(ANSWER)
        writer.close()


@dataclass
class Desk:
    tool: Tool
    intake: Intake
    calls: CallTable
    settled: SettledCalls
    admit: Callable[..., Awaitable[Admission]]


@pytest_asyncio.fixture
async def desk(database: Database, tmp_path: Path) -> AsyncGenerator[Desk]:
    """Admit a call of a quick, harmless remote tool."""
    intake = Intake()
    registry, calls, settled = tool_registry(database), CallTable(database), SettledCalls()
    tool, places = Tool(), Places(calls, settled)
    parameters, limits = FileParameters(files_of(database, tmp_path), tmp_path), CallLimits(("remote",), 2000, 60.0, 600.0)

    async def admit(**asked: object) -> Admission:
        env = ActivityEnvironment()
        env.info = dataclasses.replace(env.info, is_local=True)
        request = AdmitRequest(call=ToolCall(tool_id="t", params={"a": 1}), call_id=CALL_ID, workflow_id=CALL_ID, run_id="r")
        return await env.run(activity.admit, request.model_copy(update=asked))

    async with supervising(database) as supervisor, serving(tool.serve) as source:
        exchange = exchange_of(database, tmp_path, supervisor, intake)
        activity = Admit(
            admissions_of(database, registry, parameters, limits, places),
            FastCall(supervisor, exchange, Settlements(registry, places), intake, "h1"),
            begun_calls(supervisor, exchange, calls, prompt_settlement(registry, calls, database, tmp_path / "settling"), intake),
            Steps(StepTrace(tmp_path / "steps"), LostStepTable(database)),
        )
        manifest = ToolManifest(tool_id="t", name="T", side_effect_scope=SideEffectScope.NONE, timeout_s=1)
        await registry.register(manifest, (source,))
        yield Desk(tool, intake, calls, settled, admit)


@pytest.mark.promise("fast-path")
async def test_a_fast_call_is_made_and_settled_where_it_is_admitted(desk: Desk) -> None:
    with desk.settled.expected(CALL_ID) as settled:
        admission = await desk.admit()
        assert isinstance(admission, Answered)
        assert admission.result.result == {"ok": True}
        assert settled.result() == admission.result
    record = await desk.calls.get(CALL_ID)
    assert record is not None
    assert record.result == admission.result


async def test_a_host_that_drains_makes_no_fast_calls(desk: Desk) -> None:
    desk.intake.heed("now")
    assert isinstance(await desk.admit(), Admitted)
    assert desk.tool.requests == 0


async def test_admitting_again_after_a_crash_gives_the_recorded_result_and_asks_nobody(desk: Desk) -> None:
    first = await desk.admit()
    assert await desk.admit() == first
    assert desk.tool.requests == 1


async def test_a_fast_call_whose_connection_is_lost_becomes_an_ordinary_one(desk: Desk) -> None:
    desk.tool.drops = True
    admission = await desk.admit()
    assert isinstance(admission, Admitted)
    assert (admission.plan.fast, admission.plan.repeatable) == (False, True)
    assert await desk.calls.get(CALL_ID) is None


@pytest.mark.promise("calls-end")
async def test_a_fast_call_that_fails_for_a_reason_of_ours_becomes_an_ordinary_one(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fit(*_: object) -> None:
        raise KeyError("Id")

    monkeypatch.setattr(LargeResults, "fit", fit)
    admission = await desk.admit()
    assert isinstance(admission, Admitted)
    assert not admission.plan.fast


async def test_an_admission_that_fails_for_a_reason_of_ours_is_not_tried_for_ever(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def faulty(*_given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(FastCall, "make", faulty)
    for _ in range(MAX_TRIES - 1):
        with pytest.raises(ZeroDivisionError):
            await desk.admit()
    with pytest.raises(ApplicationError) as failure:
        await desk.admit()
    assert failure.value.non_retryable


@pytest.mark.promise("cancel-closes")
@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_call_that_is_known_to_be_cancelled_does_not_begin(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *, is_cancelled: bool
) -> None:
    async def begin(_calls: BegunCalls, admitted: Admitted, *_more: object) -> Admission:
        return admitted.model_copy(update={"is_begun": True})

    def takes(calls: BegunCalls | FastCall, *_more: object) -> bool:
        return isinstance(calls, BegunCalls)

    monkeypatch.setattr(FastCall, "takes", takes)
    monkeypatch.setattr(BegunCalls, "takes", takes)
    monkeypatch.setattr(BegunCalls, "begin", begin)
    admission = await desk.admit(is_cancelled=is_cancelled)
    assert isinstance(admission, Admitted)
    assert admission.is_begun is not is_cancelled
