"""The transcript, the outcomes and the ledger of a task."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import DBAPIError

from engine.store import tables
from engine.store.clock import now, timestamp
from engine.store.content.folder import FolderContent
from engine.store.content_sweep import sweep_files
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable, Spent
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from tests.store.making import AT, task
from toolagent.contracts.making import Stage, TaskNoteKind
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.agents.coding_log import NewNote
from toolagent_service.agents.ledger import Lost, RecordedTurn, TurnState
from toolagent_service.contracts.model import Message, ModelTurn, Text, ToolOutcome, ToolUse, Usage

TASK = "create_00000001"
LONG = "长\x00\ud800" * 5_000
ASKED = Message(role="user", content=(Text(text="Count words."),))
TURN = ModelTurn(
    content=(Text(text="So."), ToolUse(id="u1", name="write_file", input={"content": "x"})),
    stop_reason="tool_use",
    model="m" * 300,
    usage=Usage(input_tokens=10, output_tokens=5, cache_read_tokens=100, cache_write_tokens=1),
    cost_usd=0.25,
)


@pytest.fixture
def files(database: Database, tmp_path: Path) -> FileStore:
    return FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 10_000_000)


@pytest.fixture
def messages(database: Database, files: FileStore) -> MessageTable:
    return MessageTable(database, files)


async def test_messages_are_read_in_their_order_and_in_part(messages: MessageTable) -> None:
    large = Message(role="user", content=(ToolOutcome(tool_use_id="u", content=LONG),))
    for position, message in ((2, large), (1, ASKED)):
        await messages.put(TASK, position, message)
    assert await messages.read(TASK) == (ASKED, large)
    assert await messages.read(TASK, 2, 2) == (large,)
    assert await messages.read("create_00000002") == ()


async def test_of_two_messages_for_one_position_the_first_stands(messages: MessageTable) -> None:
    other = Message(role="user", content=(Text(text="Other."),))
    assert await messages.put(TASK, 1, ASKED) == ASKED
    assert await messages.put(TASK, 1, other) == ASKED
    assert await messages.read(TASK) == (ASKED,)


async def test_large_messages_and_outcomes_are_kept_as_long_as_their_task(
    database: Database, files: FileStore, messages: MessageTable, tmp_path: Path
) -> None:
    outcomes, outcome = ToolOutcomeTable(database, files), ToolOutcome(tool_use_id="u1", content=LONG, is_error=True)
    await messages.put(TASK, 1, Message(role="user", content=(Text(text=LONG),)))
    await outcomes.put(TASK, {"2:u1": outcome})
    async with database.write() as connection:
        await connection.execute(update(tables.files).values(used_at=timestamp(now() - timedelta(days=400))))
    swept = await sweep_files(database, FolderContent(tmp_path / "content"), tmp_path / "spool", timedelta(hours=26))
    assert swept.files == 0
    assert (await messages.read(TASK))[0].content == (Text(text=LONG),)
    assert await outcomes.get(TASK, ("2:u1", "4:u1")) == {"2:u1": outcome}


async def test_an_outcome_stays_the_one_it_was_first(database: Database, files: FileStore) -> None:
    outcomes = ToolOutcomeTable(database, files)
    first = ToolOutcome(tool_use_id="u1", content="first")
    for key in ("2:u1", "2:" + "u" * 300, "2:\x00"):
        second = first.model_copy(update={"content": "second"})
        assert await outcomes.put(TASK, {key: first}) == {key: first}
        assert await outcomes.put(TASK, {key: second, f"more:{key}": second}) == {key: first, f"more:{key}": second}
        assert await outcomes.get(TASK, (key, "other")) == {key: first}


async def test_an_outcome_and_its_line_are_written_together_and_once(database: Database, files: FileStore) -> None:
    outcomes, notes = ToolOutcomeTable(database, files), TaskNoteTable(database)
    kept = {"2:u1": ToolOutcome(tool_use_id="u1", content="first")}
    for line in ("first", "second"):
        await outcomes.put(TASK, kept, (NewNote("ended", TaskNoteKind.TOOL_RESULT, line),))
    assert [note.text for note in await notes.after(TASK)] == ["first"]
    async with _without_the_log(database):
        with pytest.raises((DBAPIError, StoreUnavailableError)):
            await outcomes.put(TASK, {"4:u1": kept["2:u1"]}, (NewNote("other", TaskNoteKind.TOOL_RESULT, "x"),))
    assert await outcomes.get(TASK, ("4:u1",)) == {}


@pytest.mark.promise("no-turn-paid-twice")
async def test_a_turn_that_was_paid_for_is_found_again_with_what_was_said(database: Database, messages: MessageTable) -> None:
    turns = ModelTurnTable(database, messages)
    await messages.put(TASK, 1, ASKED)
    assert (await turns.state(TASK, "1")).recorded is None
    recorded = await turns.record(TASK, "1", TURN, AT, AT + timedelta(seconds=2), position=2)
    assert recorded == RecordedTurn(TURN, 2) == (await turns.state(TASK, "1")).recorded
    again = TURN.model_copy(update={"content": (Text(text="Otherwise."),), "cost_usd": 9.0})
    assert await turns.record(TASK, "1", again, AT, AT, position=2) == recorded
    assert await messages.read(TASK) == (ASKED, Message(role="assistant", content=TURN.content))
    assert await turns.spent(TASK) == Spent(turns=1, tokens=116, cost_usd=0.25, unpriced=0)


async def test_of_many_that_record_one_turn_at_once_one_is_in_the_ledger(database: Database, messages: MessageTable) -> None:
    turns = ModelTurnTable(database, messages)
    told = await asyncio.gather(*(turns.record(TASK, "1", TURN, AT, AT, position=2) for _ in range(6)))
    assert set(map(repr, told)) == {repr(RecordedTurn(TURN, 2))}
    assert await turns.spent(TASK) == Spent(turns=1, tokens=116, cost_usd=0.25, unpriced=0)


@pytest.mark.promise("no-turn-paid-twice")
async def test_a_turn_is_written_with_its_question_and_its_lines_or_not_at_all(database: Database, messages: MessageTable) -> None:
    turns, notes = ModelTurnTable(database, messages), TaskNoteTable(database)
    other = Message(role="user", content=(Text(text="Other."),))
    for number, question in enumerate((ASKED, other)):
        said = NewNote(f"said:{number}", TaskNoteKind.TEXT, "So.")
        await turns.record(TASK, "1", TURN, AT, AT, position=2, question=question, notes=(said,))
    assert await messages.read(TASK) == (ASKED, Message(role="assistant", content=TURN.content))
    assert [note.kind for note in await notes.after(TASK)] == [TaskNoteKind.COST, TaskNoteKind.TEXT]
    async with _without_the_log(database):
        with pytest.raises((DBAPIError, StoreUnavailableError)):
            await turns.record(TASK, "2", TURN, AT, AT, position=4, question=other)
    assert len(await messages.read(TASK)) == 2
    assert (await turns.state(TASK, "2")).recorded is None


async def test_what_stood_at_its_position_is_what_a_turn_says(database: Database, messages: MessageTable) -> None:
    turns = ModelTurnTable(database, messages)
    await messages.put(TASK, 2, ASKED)
    assert await turns.record(TASK, "1", TURN, AT, AT, position=2) == RecordedTurn(TURN.model_copy(update={"content": ASKED.content}), 2)


async def test_a_turn_is_told_as_it_is_kept(database: Database, messages: MessageTable) -> None:
    turns = ModelTurnTable(database, messages)
    strange = TURN.model_copy(update={"model": "m\x00\ud800", "content": (Text(text=LONG),)})
    assert await turns.record(TASK, "1", strange, AT, AT, position=2) == (await turns.state(TASK, "1")).recorded


async def test_what_a_task_and_its_stages_cost_is_what_the_ledger_says(database: Database, messages: MessageTable) -> None:
    tasks, turns = TaskTable(database), ModelTurnTable(database, messages)
    await tasks.create(task())
    await tasks.enter_stage(TASK, Stage.PLAN)
    await turns.record(TASK, "1", TURN, AT, AT, position=2)
    await tasks.enter_stage(TASK, Stage.BUILD)
    for key in ("2", "3", "3"):
        await turns.record(TASK, key, TURN, AT, AT, position=2 * int(key))
    await turns.record(TASK, "4", TURN.model_copy(update={"cost_usd": None}), AT, AT, position=8)
    (last,) = await TaskNoteTable(database).tail(TASK, 1)
    assert " and 1 turns of unknown price, " in last.text
    await tasks.enter_stage(TASK, Stage.VERIFY)
    found = await tasks.get(TASK)
    assert found is not None
    assert (found.cost_usd, found.tokens, found.unpriced_turns) == (0.75, 4 * 116, 1)
    assert [stage.cost_usd for stage in found.stages] == [0.25, 0.5, 0.0]
    assert (await turns.spent(TASK)).unpriced == 1


async def test_attempts_that_broke_off_are_counted_with_their_turn_and_no_other(database: Database, messages: MessageTable) -> None:
    tasks, turns, none = TaskTable(database), ModelTurnTable(database, messages), Lost(0, Usage(), 0.0)
    await tasks.create(task())
    cut = TURN.model_copy(update={"content": (), "stop_reason": "cut"})
    assert (await turns.state(TASK, "turn-1")).lost == none
    for attempt in ("run:1:1", "run:1:2", "run:1:2"):
        await turns.record_lost(TASK, "turn-1", attempt, cut, AT, AT, position=2)
    await turns.record_lost(TASK, "turn-11", "run:2:1", cut, AT, AT, position=4)
    both = Usage(input_tokens=20, output_tokens=10, cache_read_tokens=200, cache_write_tokens=2)
    assert await turns.state(TASK, "turn-1") == TurnState(None, Lost(2, both, 0.5))
    await turns.record(TASK, "turn-1", TURN, AT, AT, position=2)
    assert await turns.spent(TASK) == Spent(turns=1, tokens=4 * 116, cost_usd=1.0, unpriced=0, lost=3)
    found = await tasks.get(TASK)
    assert found is not None
    assert (found.tokens, found.cost_usd) == (4 * 116, 1.0)


async def test_what_a_second_turn_of_one_key_cost_is_lost_and_counted_once(database: Database, messages: MessageTable) -> None:
    tasks, turns = TaskTable(database), ModelTurnTable(database, messages)
    await tasks.create(task())
    for attempt, began in (
        ("run:1:1", AT),
        ("run:1:1", AT),
        ("run:1:2", AT + timedelta(seconds=9)),
        ("run:1:2", AT + timedelta(seconds=9)),
    ):
        stands = await turns.record(TASK, "turn-1", TURN, began, began, position=2, attempt=attempt)
        assert stands == RecordedTurn(TURN, 2)
    assert await turns.spent(TASK) == Spent(turns=1, tokens=2 * 116, cost_usd=0.5, unpriced=0, lost=1)
    found = await tasks.get(TASK)
    assert found is not None
    assert (found.tokens, found.cost_usd) == (2 * 116, 0.5)


@asynccontextmanager
async def _without_the_log(database: Database) -> AsyncGenerator[None]:
    await _rename(database, "task_notes", "away")
    yield
    await _rename(database, "away", "task_notes")


async def _rename(database: Database, table: str, name: str) -> None:
    async with database.write() as connection:
        await connection.execute(text(f"ALTER TABLE {table} RENAME TO {name}"))
