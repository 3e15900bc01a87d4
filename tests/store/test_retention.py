"""Old tasks and chats are deleted, with everything that only they use."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine, event, func, select, update

from engine.store import tables
from engine.store.calls import CallTable
from engine.store.chat_tables import chats
from engine.store.chats import ChatTable
from engine.store.clock import now, timestamp
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.retention import forget_calls, forget_chats, forget_left_over, forget_sessions, forget_tasks
from engine.store.sessions import SessionTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from tests.store.making import put_evidence, task
from tests.store.test_calls import RECORD, RESULT, STARTED
from tests.store.test_files import chunks
from tests.store.test_sessions import not_to_be_read, opened
from toolagent.contracts.calls import ToolCall
from toolagent.contracts.making import Evidence, TaskNoteKind
from toolagent.contracts.sessions import AdoptedCall, SessionState, SessionView
from toolagent.contracts.tasks import TaskState
from toolagent_service.agents.coding_log import NewNote
from toolagent_service.contracts.model import Message, Text, ToolOutcome
from toolagent_service.groups.sessions import launch_ids

OF_TASKS = (tables.tasks, tables.task_notes, tables.messages, tables.tool_outcomes, tables.model_turns)
RETENTION = timedelta(days=4)


async def made(database: Database, files: FileStore, number: int) -> str:
    """A task with logs, messages and a product."""
    task_id = (await TaskTable(database).create(task(number))).task_id
    await TaskNoteTable(database).write(task_id, (NewNote("said", TaskNoteKind.TEXT, "Something."),))
    await MessageTable(database, files).put(task_id, 1, Message(role="user", content=(Text(text="x" * 20_000),)))
    await ToolOutcomeTable(database, files).put(task_id, {"use": ToolOutcome(tool_use_id="use", content="y")})
    await put_evidence(database, "word_counter", f"{number}.0.0", Evidence(task_id=task_id, at=datetime(2026, 11, 21, tzinfo=UTC)))
    return task_id


async def counted(database: Database) -> tuple[list[int], int]:
    """The rows of tasks by table, and the files that tasks hold."""
    async with database.read() as connection:
        rows = [(await connection.execute(select(func.count()).select_from(table))).scalar_one() for table in OF_TASKS]
        held = tables.file_references.c.holder.like("task:%")
        files = select(func.count()).select_from(tables.file_references).where(held)
        return rows, (await connection.execute(files)).scalar_one()


async def test_what_ended_long_ago_is_forgotten_but_for_its_evidence(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 1 << 20)
    old, young, unended = [await made(database, files, number) for number in (1, 2, 3)]
    for task_id in (old, young):
        await TaskTable(database).settle(task_id, TaskState.FAILED, "No.")
    async with database.write() as connection:
        long_ago = timestamp(now() - timedelta(days=5))
        await connection.execute(update(tables.tasks).where(tables.tasks.c.task_id == old).values(ended_at=long_ago))
    before, held = await counted(database)
    assert held == 3
    assert await forget_tasks(database, RETENTION) == 1
    assert [one.task_id for one in await TaskTable(database).page()] == [unended, young]
    after, held = await counted(database)
    assert held == 2
    assert [now_there < there for now_there, there in zip(after, before, strict=True)] == [True, True, True, True, False]
    assert await TaskNoteTable(database).after(old) == ()
    assert set(await EvidenceTable(database).of_tool("word_counter")) == {"1.0.0", "2.0.0", "3.0.0"}
    assert await forget_tasks(database, RETENTION) == 0


async def test_records_of_calls_that_ended_long_ago_are_removed_with_all_that_is_only_theirs(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 1 << 20)
    named = (await files.put(chunks(b"x"), "x.txt")).file_id
    table, long_ago = CallTable(database), timestamp(now() - timedelta(days=5))
    for tool_id in ("adder", "echo"):
        for name in ("old", "young", "unended"):
            call = RECORD.model_copy(update={"call_id": f"call-{tool_id}-{name}", "tool_id": tool_id, "params": {"file": named}})
            started = STARTED.model_copy(update={"event_id": call.call_id, "call_id": call.call_id, "tool_id": tool_id})
            await table.mark_sent(call)
            if name != "unended":
                await table.settle(call, RESULT, (started,))
    old = tables.calls.c.call_id.like("%-old")
    async with database.write() as connection:
        await connection.execute(update(tables.calls).where(old).values(settled_at=long_ago))
    assert await forget_calls(database, RETENTION) == 2
    for kept in (tables.calls.c.call_id, tables.events.c.call_id, tables.file_references.c.holder):
        found = {str(one).removeprefix("call:") for one in await database.scalars(select(kept).where(kept.is_not(None)))}
        ended = {f"call-{tool_id}-young" for tool_id in ("adder", "echo")}
        assert found == (ended if kept.table is tables.events else ended | {f"call-{tool_id}-unended" for tool_id in ("adder", "echo")})
    assert await forget_calls(database, RETENTION) == 0


async def test_the_record_of_a_launch_is_kept_as_long_as_its_session(database: Database) -> None:
    """By it, the provider's server is known to be the session's, and is not launched again."""
    table, sessions, long_ago = CallTable(database), SessionTable(database), now() - timedelta(days=5)
    adopted = AdoptedCall(call=ToolCall(tool_id="adder"), call_id="call-of-its-caller", workflow_id="w", run_id="r")
    kept, views = {adopted.call_id}, list[SessionView]()
    for number, adopts in ((1, None), (2, adopted), (3, None)):
        request, view = opened(number)
        request = request.model_copy(update={"adopts": adopts})
        assert await sessions.open(request, view, None)
        kept |= {*launch_ids(request)}
        views.append(view)
    await not_to_be_read(database, views[2].session_id)
    async with database.write() as connection:
        unknown = update(tables.group_sessions).where(tables.group_sessions.c.session_id == views[2].session_id)
        await connection.execute(unknown.values(request='{"group": "of a later version"}'))
    for call_id in (*kept, *(f"call-number-{number}" for number in range(9))):
        await table.settle(RECORD.model_copy(update={"call_id": call_id}), RESULT, ())
    async with database.write() as connection:
        await connection.execute(update(tables.calls).values(settled_at=timestamp(long_ago), created_at=timestamp(long_ago)))
    assert await forget_calls(database, RETENTION) == 9
    assert {*await database.scalars(select(tables.calls.c.call_id))} == kept
    await sessions.note(views[1].model_copy(update={"state": SessionState.STOPPED, "ended_at": long_ago}))
    assert (await forget_sessions(database, RETENTION), await forget_calls(database, RETENTION)) == (1, 1)
    assert {*await database.scalars(select(tables.calls.c.call_id))} == kept - {adopted.call_id}


async def test_sessions_that_ended_long_ago_are_deleted_and_those_that_may_have_to_be_stopped_are_not(database: Database) -> None:
    table = SessionTable(database)
    for number, ended_at in ((1, now() - timedelta(days=5)), (2, now()), (3, None)):
        request, view = opened(number)
        await table.open(request, view.model_copy(update={"ended_at": ended_at}), None)
    assert await forget_sessions(database, RETENTION) == 1
    assert {view.session_id[-1] for view in await table.of_group("servers")} == {"2", "3"}


async def test_chats_that_were_silent_for_long_are_deleted(database: Database) -> None:
    table = ChatTable(database)
    for chat_id in ("old", "spoken in just now", "young"):
        await table.say(chat_id, "msg-1", "Hello.")
    long_ago = timestamp(now() - timedelta(days=5))
    async with database.write() as connection:
        await connection.execute(update(chats).where(chats.c.chat_id != "young").values(updated_at=long_ago))
    await table.say("spoken in just now", "msg-2", "Again.")
    # One that gets a message between the look and the deletion stays.
    assert not await table.forget("spoken in just now", silent_since=timestamp(now() - RETENTION))
    assert await forget_chats(database, RETENTION) == 1
    assert {chat.chat_id for chat in await table.page(limit=9)} == {"spoken in just now", "young"}
    assert await table.turns("old") == ()


async def test_what_was_still_written_for_a_chat_that_was_deleted_is_deleted_too(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 1 << 20)
    chats, messages = ChatTable(database), MessageTable(database, files)
    for chat_id in ("gone", "there"):
        await chats.say(chat_id, "msg-1", "Hello.")
    gone, there = [await chats.conversation(chat_id, 1) for chat_id in ("gone", "there")]
    await chats.forget("gone")
    await TaskNoteTable(database).write(gone, (NewNote("said", TaskNoteKind.TEXT, "Something."),))
    for conversation_id in (gone, there, "create_00000001"):
        await messages.put(conversation_id, 1, Message(role="user", content=(Text(text="x" * 20_000),)))
    assert await forget_left_over(database) == 1
    assert [len(await messages.read(one)) for one in (gone, there, "create_00000001")] == [0, 1, 1]
    assert await TaskNoteTable(database).after(gone) == ()
    assert (await counted(database))[1] == 2
    assert await forget_left_over(database) == 0


async def test_what_was_still_written_for_chats_is_looked_for_without_a_look_at_what_tasks_have(sqlite_url: str) -> None:
    asked: list[tuple[str, tuple[object, ...]]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Sequence[object], *_: object) -> None:
        if "DISTINCT" in statement:
            asked.append((statement, tuple(parameters)))

    database = Database(sqlite_url)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        await forget_left_over(database)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    async with database.read() as connection:
        plans = [str((await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", params)).all()) for statement, params in asked]
    await database.close()
    assert len(plans) == 4
    assert not [plan for plan in plans if "SCAN" in plan]
