"""One call in a lane: its slot, and what it may record."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.calling.intake import Intake
from engine.calling.lane import Flight, Work
from engine.calling.lane_call import LaneMaking
from engine.calls.cached_tools import CachedTools
from engine.network.ports import free_port
from engine.store.catalog_state import CatalogState
from engine.store.claims import WORKFLOW, Claim, ClaimTable
from engine.store.database import Database
from engine.store.groups import GroupTable
from tests.calls.conftest import Desk, Removal
from tests.calls.parts import ANSWER, exchange_of, serving, supervising
from tests.parts import tool_registry
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.sources import RemoteSource
from toolagent.core.calls.idempotency import fingerprint


@dataclass
class Tool:
    """Answers when the test releases it."""

    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.is_asked.set()
        await self.may_answer.wait()
        writer.write(ANSWER)
        writer.close()


@dataclass
class Bench:
    making: LaneMaking
    harmless: LaneMaking
    """A lane that makes no calls with side effects."""
    tool: Tool
    claims: ClaimTable
    intake: Intake

    async def make(self, flight: Flight, work: Work | None = None) -> ToolResult | None:
        async with asyncio.timeout(10):
            return await self.making.make(flight, "lane-1", "run-1", work or _work)


@asynccontextmanager
async def _work() -> AsyncGenerator[None]:
    yield


def flight(tool_id: str, number: int = 1, *, is_accepted: bool = False) -> Flight:
    call = ToolCall(tool_id=tool_id)
    return Flight(Claim(f"call-{number:08}", fingerprint(call), "own", call=call), call, is_accepted=is_accepted)


@pytest_asyncio.fixture
async def bench(desk: Desk, database: Database, tmp_path: Path) -> AsyncGenerator[Bench]:
    """A lane with one slot, and tools with different side effects and time-outs."""
    registry, tool, intake = tool_registry(database), Tool(), Intake(("default",))
    cached = CachedTools(registry, CatalogState(database))
    admissions = desk.admissions_by(cached)
    async with supervising(database) as supervisor, serving(tool.serve) as source:
        exchange = exchange_of(database, tmp_path, supervisor, intake)
        making, harmless = (
            LaneMaking(cached, admissions, supervisor, exchange, desk.settlements, desk.calls, {"default": 1}, intake, "h1", acts=acts)
            for acts in (True, False)
        )
        for tool_id, scope, timeout_s in (
            ("fast", SideEffectScope.NONE, 2),
            ("patient", SideEffectScope.NONE, 10),
            ("acts", SideEffectScope.LOCAL_STATE, 2),
        ):
            await registry.register(ToolManifest(tool_id=tool_id, name="T", side_effect_scope=scope, timeout_s=timeout_s), (source,))
        schema: dict[str, JsonValue] = {"type": "object", "properties": {"file": {"type": "string", "format": "file-path"}}}
        await registry.register(ToolManifest(tool_id="files", name="T", output_schema=schema, timeout_s=2), (source,))
        nowhere = RemoteSource(remote_url=f"http://127.0.0.1:{free_port()}")
        await registry.register(ToolManifest(tool_id="far", name="T", side_effect_scope=SideEffectScope.LOCAL_STATE), (nowhere,))
        yield Bench(making, harmless, tool, ClaimTable(database), intake)
        tool.may_answer.set()


@pytest.mark.parametrize(("tool_id", "is_made"), [("fast", True), ("patient", False), ("acts", False)])
async def test_a_call_that_takes_a_slot_with_a_workflow_takes_one_in_a_lane(bench: Bench, tool_id: str, *, is_made: bool) -> None:
    first = asyncio.create_task(bench.make(flight(tool_id)))
    await asyncio.wait_for(bench.tool.is_asked.wait(), 10)
    second = asyncio.create_task(bench.make(flight(tool_id, 2)))
    await asyncio.wait((second,), timeout=0.2 if is_made else 10)
    assert second.done() is not is_made
    bench.tool.may_answer.set()
    results = [await first, await second]
    assert [result is not None for result in results] == [True, is_made]


@pytest.mark.promise("lanes-see-the-catalog")
async def test_a_batch_makes_no_call_of_a_version_that_another_process_deactivated_before_it(bench: Bench, database: Database) -> None:
    bench.tool.may_answer.set()
    await bench.making.prepare()
    made = await bench.make(flight("fast"))
    await tool_registry(database).deactivate("fast", "1.0.0")
    await bench.making.prepare()
    refused = await bench.make(flight("fast", 2))
    assert [result and (result.error_type, result.metadata["way"]) for result in (made, refused)] == [
        (None, "lane"),
        (ErrorType.TOOL_NOT_FOUND, "lane"),
    ]


@pytest.mark.parametrize(("tool_id", "has_folder"), [("fast", False), ("files", True)])
async def test_a_call_has_a_folder_where_its_schemas_speak_of_files(
    bench: Bench, tmp_path: Path, tool_id: str, *, has_folder: bool
) -> None:
    call = asyncio.create_task(bench.make(flight(tool_id)))
    await asyncio.wait_for(bench.tool.is_asked.wait(), 10)
    assert (tmp_path / "calls").exists() is has_folder
    bench.tool.may_answer.set()
    assert await call is not None


@pytest.mark.promise("cancel-closes")
async def test_a_cancel_comes_too_late_for_an_answer_whose_folder_is_removed(bench: Bench, removal: Removal) -> None:
    bench.tool.may_answer.set()
    call = asyncio.create_task(bench.make(flight("files")))
    await asyncio.to_thread(removal.begins.wait, 10)
    call.cancel()
    await asyncio.sleep(0)
    removal.may_go_on.set()
    result = await call
    assert result is not None
    assert (result.status, result.result) == ("success", {"ok": True})


async def test_a_call_of_a_tool_that_has_side_effects_since_its_door_looked_gets_a_workflow(bench: Bench) -> None:
    bench.tool.may_answer.set()
    assert await bench.harmless.make(flight("acts"), "lane-1", "run-1", _work) is None
    assert not bench.tool.is_asked.is_set()
    assert await bench.harmless.make(flight("fast"), "lane-1", "run-1", _work) is not None


@pytest.mark.promise("cancel-closes")
@pytest.mark.parametrize("ticks", range(5))
async def test_a_cancel_that_comes_together_with_the_slot_is_not_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, ticks: int
) -> None:
    monkeypatch.setattr("engine.calling.lane_call.BUDGET_S", 5.0)

    async def cancel() -> None:
        for _ in range(ticks):
            await asyncio.sleep(0)
        waits.cancel()

    @asynccontextmanager
    async def work() -> AsyncGenerator[None]:
        waits.task = asyncio.create_task(make(waits))
        yield
        cancelling.append(asyncio.create_task(cancel()))

    async def make(flight: Flight) -> None:
        results.append(await bench.make(flight))

    results, cancelling, waits = list[ToolResult | None](), list[asyncio.Task[None]](), flight("acts", 2)
    bench.tool.may_answer.set()
    assert await bench.make(flight("acts"), work) is not None
    assert waits.task is not None
    await asyncio.wait((waits.task, *cancelling), timeout=10)
    assert waits.task.cancelled() or [result and result.error_type for result in results] == [ErrorType.CANCELLED]


@pytest.mark.promise("never-twice")
@pytest.mark.parametrize("tool_id", ["fast", "acts"])
async def test_who_was_overtaken_while_the_tool_worked_settles_nothing(bench: Bench, desk: Desk, tool_id: str) -> None:
    overtaken = flight(tool_id, is_accepted=True)
    await bench.claims.take(overtaken.claim, overtaken.call)
    made = asyncio.create_task(bench.make(overtaken))
    await asyncio.wait_for(bench.tool.is_asked.wait(), 10)
    await bench.claims.take_over(overtaken.claim, WORKFLOW)
    bench.tool.may_answer.set()
    assert await made is None
    record = await desk.calls.get(overtaken.call_id)
    assert record is None or record.result is None


@pytest.mark.promise("never-twice")
async def test_who_was_overtaken_before_its_tool_was_removed_refuses_nothing(bench: Bench, desk: Desk) -> None:
    overtaken = flight("removed", is_accepted=True)
    await bench.claims.take(overtaken.claim, overtaken.call)
    await bench.claims.take_over(overtaken.claim, WORKFLOW)
    assert await bench.make(overtaken) is None
    assert await desk.calls.get(overtaken.call_id) is None
    refused = await bench.make(flight("removed", 2))
    assert refused is not None
    assert refused.error_type is ErrorType.TOOL_NOT_FOUND


@pytest.mark.promise("never-twice")
@pytest.mark.parametrize("is_overtaken", [False, True])
async def test_who_was_overtaken_after_it_had_not_reached_its_tool_settles_nothing(bench: Bench, desk: Desk, *, is_overtaken: bool) -> None:
    """It had renewed its claim with the mark that it was sent, which is taken back."""
    asked = flight("far")

    @asynccontextmanager
    async def work() -> AsyncGenerator[None]:
        yield
        if is_overtaken:
            assert await bench.claims.take_over(asked.claim, WORKFLOW)

    result = await bench.make(asked, work)
    record = await desk.calls.get(asked.call_id)
    assert record is not None
    assert (result is None, record.result) == (is_overtaken, result)


async def test_a_claim_of_a_call_that_was_about_to_move_goes_with_its_end(bench: Bench) -> None:
    asked = flight("fast")

    async def move() -> None:
        await bench.claims.take(asked.claim, asked.call)

    @asynccontextmanager
    async def work() -> AsyncGenerator[None]:
        yield
        asked.moving = asyncio.create_task(move())
        await asked.moving

    bench.tool.may_answer.set()
    assert await bench.make(asked, work) is not None
    assert await bench.claims.get(asked.call_id) is None


async def test_what_is_in_hand_when_the_host_begins_to_drain_ends_and_nothing_more_is_ready(bench: Bench) -> None:
    entry = ToolEntry(manifest=ToolManifest(tool_id="fast", name="T"), sources=(RemoteSource(remote_url="http://far.example"),))
    assert bench.making.is_ready(entry)
    made = asyncio.create_task(bench.make(flight("fast")))
    await asyncio.wait_for(bench.tool.is_asked.wait(), 10)
    bench.intake.heed("now")
    assert (bench.making.is_ready(entry), bench.intake.calls) == (False, {"default": 1})
    bench.tool.may_answer.set()
    result = await made
    assert result is not None
    assert (result.error, bench.intake.calls) == (None, {})


async def test_a_call_that_has_a_part_in_a_session_gets_a_workflow(bench: Bench, database: Database) -> None:
    """Also if the group was added after the door had looked."""
    steps: JsonValue = [{"tool_id": "fast", "role": "launch"}, {"tool_id": "acts", "role": "stop"}]
    fields: dict[str, JsonValue] = {"group_id": "servers", "name": "Servers", "tool_ids": ["fast", "acts"], "lifecycle": True}
    await GroupTable(database).replace([ToolGroup.model_validate({**fields, "steps": steps})])
    assert await bench.make(flight("fast")) is None
    assert not bench.tool.is_asked.is_set()
