"""The log of a task."""

import asyncio

from engine.store.database import Database
from engine.store.task_notes import TaskNoteTable
from toolagent.contracts.making import TaskNoteKind
from toolagent_service.agents.coding_log import NewNote

TASK = "create_00000001"


async def test_notes_are_numbered_without_gaps_whoever_writes_them_at_once(database: Database) -> None:
    first, second = TaskNoteTable(database), TaskNoteTable(database)
    writers = (first, second) * 10
    await asyncio.gather(*(notes.add(TASK, f"k{number}", TaskNoteKind.TEXT, "x") for number, notes in enumerate(writers)))
    found = await first.after(TASK)
    assert [note.position for note in found] == [*range(1, 21)]


async def test_a_thing_that_is_noted_twice_is_there_once(database: Database) -> None:
    notes = TaskNoteTable(database)
    stands = await notes.add(TASK, "k", TaskNoteKind.TEXT, "first", {"a": [1]})
    assert await notes.add(TASK, "k", TaskNoteKind.DONE, "second") == stands
    both = await notes.add_all(TASK, (NewNote("l", TaskNoteKind.TEXT, "third"), NewNote("k", TaskNoteKind.TEXT, "fourth")))
    assert [note.text for note in both] == ["third", "first"]
    assert await notes.add("create_00000002", "k", TaskNoteKind.TEXT, "other") != stands
    assert [note.position for note in await notes.after(TASK)] == [1, 2]


async def test_of_many_that_note_the_same_at_once_all_are_told_of_one(database: Database) -> None:
    notes = TaskNoteTable(database)
    told = await asyncio.gather(*(notes.add(TASK, "k", TaskNoteKind.TEXT, str(number)) for number in range(8)))
    assert len({note.text for note in told}) == 1
    assert await notes.after(TASK) == (told[0],)


async def test_a_log_is_read_from_anywhere_and_from_its_end(database: Database) -> None:
    notes = TaskNoteTable(database)
    kinds = (TaskNoteKind.TEXT, TaskNoteKind.GUIDANCE)
    await notes.add_all(TASK, [NewNote(str(number), kinds[number % 2], str(number)) for number in range(6)])
    assert [note.text for note in await notes.after(TASK, 4)] == ["4", "5"]
    assert [note.text for note in await notes.after(TASK, 1, limit=2)] == ["1", "2"]
    assert [note.text for note in await notes.after(TASK, 2) if note.kind is TaskNoteKind.GUIDANCE] == ["3", "5"]
    assert [note.text for note in await notes.tail(TASK, 2)] == ["4", "5"]
    assert await notes.after("create_00000002") == ()


async def test_what_no_database_takes_is_replaced(database: Database) -> None:
    notes = TaskNoteTable(database)
    for key in ("k\x00", "k" * 300, "\ud800"):
        assert await notes.add(TASK, key, TaskNoteKind.TEXT, "x") == await notes.add(TASK, key, TaskNoteKind.TEXT, "y")
    note = await notes.add(TASK, "k", TaskNoteKind.TEXT, "a\x00b\ud800c漢", {"nul": "\x00"})
    assert (note.text, note.payload) == ("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c漢", {"nul": "\x00"})
