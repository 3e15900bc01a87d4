"""The log of a task."""

import asyncio

from engine.store.database import Database
from engine.store.task_notes import TaskNoteTable
from toolagent.contracts.making import TaskNoteKind
from toolagent_service.agents.coding_log import NewNote

TASK = "create_00000001"


def _text(key: str, text: str = "x") -> NewNote:
    return NewNote(key, TaskNoteKind.TEXT, text)


async def test_notes_are_numbered_without_gaps_whoever_writes_them_at_once(database: Database) -> None:
    first, second = TaskNoteTable(database), TaskNoteTable(database)
    writers = (first, second) * 10
    await asyncio.gather(*(notes.write(TASK, (_text(f"k{number}"),)) for number, notes in enumerate(writers)))
    found = await first.after(TASK)
    assert [note.position for note in found] == [*range(1, 21)]


async def test_a_thing_that_is_noted_twice_is_there_once(database: Database) -> None:
    notes = TaskNoteTable(database)
    await notes.write(TASK, (NewNote("k", TaskNoteKind.TEXT, "first", {"a": [1]}),))
    await notes.write(TASK, (NewNote("k", TaskNoteKind.DONE, "second"),))
    await notes.write(TASK, (_text("l", "third"), _text("k", "fourth")))
    await notes.write("create_00000002", (_text("k", "other"),))
    stand = [(note.position, note.kind, note.text, note.payload) for note in await notes.after(TASK)]
    assert stand == [(1, TaskNoteKind.TEXT, "first", {"a": [1]}), (2, TaskNoteKind.TEXT, "third", None)]


async def test_of_many_that_note_the_same_at_once_one_stands(database: Database) -> None:
    notes = TaskNoteTable(database)
    await asyncio.gather(*(notes.write(TASK, (_text("k", str(number)),)) for number in range(8)))
    assert len(await notes.after(TASK)) == 1


async def test_a_log_is_read_from_anywhere_and_from_its_end(database: Database) -> None:
    notes = TaskNoteTable(database)
    kinds = (TaskNoteKind.TEXT, TaskNoteKind.GUIDANCE)
    await notes.write(TASK, [NewNote(str(number), kinds[number % 2], str(number)) for number in range(6)])
    assert [note.text for note in await notes.after(TASK, 4)] == ["4", "5"]
    assert [note.text for note in await notes.after(TASK, 1, limit=2)] == ["1", "2"]
    assert [note.text for note in await notes.after(TASK, 2) if note.kind is TaskNoteKind.GUIDANCE] == ["3", "5"]
    assert [note.text for note in await notes.tail(TASK, 2)] == ["4", "5"]
    assert await notes.after("create_00000002") == ()


async def test_what_no_database_takes_is_replaced(database: Database) -> None:
    notes = TaskNoteTable(database)
    for key in ("k\x00", "k" * 300, "\ud800"):
        await notes.write(TASK, (_text(key, "x"),))
        await notes.write(TASK, (_text(key, "y"),))
    await notes.write(TASK, (NewNote("k", TaskNoteKind.TEXT, "a\x00b\ud800c漢", {"nul": "\x00"}),))
    *others, note = await notes.after(TASK)
    assert [other.text for other in others] == ["x"] * 3
    assert (note.text, note.payload) == ("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c漢", {"nul": "\x00"})
