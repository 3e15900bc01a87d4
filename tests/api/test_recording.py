"""Calls that cannot be recorded are refused at once; calls that wait for their record are answered."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio
from temporalio.client import Client

from api.client.guarded_calls import GuardedCalls
from api.client.recording import Recording, UnrecordableError
from api.views.readiness import Remembered
from engine.disk.room import require_room
from tests.disks import tiny_disk
from toolagent.client.failures import AnswerPendingError, ChatUnreachableError, MakingUnreachableError
from toolagent.contracts.chats import ChatMessage
from toolagent.contracts.making import Guidance, MakeRequest
from toolagent.contracts.task_specs import BuildTool
from toolagent.core.failures import StoreUnwritableError


class Place:
    """A place where calls are recorded."""

    def __init__(self) -> None:
        self.failure: Exception | None = None

    async def check(self) -> None:
        if self.failure is not None:
            raise self.failure


@pytest_asyncio.fixture
async def place() -> Place:
    return Place()


@pytest_asyncio.fixture
async def recording(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Recording]:
    monkeypatch.setattr("api.client.recording._CALM_S", 0.0)
    monkeypatch.setattr("api.client.recording._LOOK_S", 0.01)
    monkeypatch.setattr("api.views.readiness._FRESH_S", 0.0)
    recording = Recording((Remembered(place.check),), lambda: None)
    async with recording.watched():
        yield recording


async def test_a_full_disk_is_known_without_writing_to_it(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "tiny", "512k") as disk, pytest.raises(UnrecordableError) as refusal:
        Recording((), partial(require_room, {"The folder": disk})).require()
    assert (refusal.value.cause, refusal.value.was_sent) == ("disk_full", False)
    Recording((), partial(require_room, {"The folder": tmp_path})).require()


async def test_who_waits_when_it_turns_out_is_answered_and_later_all_goes_on(place: Place, recording: Recording) -> None:
    async with asyncio.timeout(10):
        place.failure = StoreUnwritableError("disk_full", "The disk is full.", "")
        with pytest.raises(UnrecordableError) as refusal:
            async with recording.recorded():
                await asyncio.Event().wait()
        assert (refusal.value.cause, refusal.value.was_sent) == ("disk_full", True)
        with pytest.raises(UnrecordableError):
            recording.require()
        place.failure = None
        while True:
            try:
                recording.require()
                break
            except UnrecordableError:
                await asyncio.sleep(0.01)


class EndlessCalls:
    """A client whose calls, batches and answers do not end."""

    def get_workflow_handle(self, *_: object, **__: object) -> "EndlessCalls":
        return self

    async def result(self, *_: object, **__: object) -> None:
        await asyncio.Event().wait()

    execute_update_with_start_workflow = execute_update = query = start_workflow = cancel = signal = result


@pytest.mark.parametrize("what", ["result", "batch_end"])
async def test_who_waits_for_the_end_of_what_was_taken_is_answered_too(place: Place, recording: Recording, what: str) -> None:
    calls = GuardedCalls(cast("Client", EndlessCalls()), recording, patience_s=60)
    place.failure = StoreUnwritableError("disk_full", "The disk is full.", "")
    async with asyncio.timeout(10):
        with pytest.raises(AnswerPendingError):
            await getattr(calls, what)("call-1")


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_who_says_something_is_told_what_cannot_be_written(place: Place, recording: Recording, when: str) -> None:
    chats = GuardedCalls(cast("Client", EndlessCalls()), recording, patience_s=60).chats
    saying = asyncio.create_task(chats.say(ChatMessage(chat_id="a", message="hello", message_id="m"))) if when == "meanwhile" else None
    await asyncio.sleep(0)
    place.failure = StoreUnwritableError("disk_full", "The disk is full.", "")
    async with asyncio.timeout(10):
        with pytest.raises(ChatUnreachableError, match="The disk is full"):
            await (saying or chats.say(ChatMessage(chat_id="a", message="hello", message_id="m")))


@pytest.mark.parametrize("what", ["close", "start", "cancel", "guide"])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_who_closes_a_chat_or_wants_a_tool_made_is_told_what_cannot_be_written(
    place: Place, recording: Recording, what: str, when: str
) -> None:
    calls = GuardedCalls(cast("Client", EndlessCalls()), recording, patience_s=60)
    asked = MakeRequest(task_id="create_1", spec=BuildTool(tool_name="adder", description="Adds."))
    asking = {
        "close": lambda: calls.chats.close("a"),
        "start": lambda: calls.making.start(asked),
        "cancel": lambda: calls.making.cancel("create_1"),
        "guide": lambda: calls.making.guide("create_1", Guidance(id="1", text="hurry")),
    }[what]
    begun = asyncio.ensure_future(asking()) if when == "meanwhile" else None
    await asyncio.sleep(0)
    place.failure = StoreUnwritableError("disk_full", "The disk is full.", "")
    async with asyncio.timeout(10):
        with suppress(UnrecordableError):
            while when == "before":
                recording.require()
                await asyncio.sleep(0.01)
        with pytest.raises((ChatUnreachableError, MakingUnreachableError, StoreUnwritableError), match="The disk is full") as told:
            await (begun or asking())
    # Nothing was sent, so the answer has the cause, and no task to ask for.
    assert isinstance(told.value, StoreUnwritableError) == ((what, when) == ("start", "before"))


class QuickCalls(EndlessCalls):
    """A client whose server answers at once."""

    async def result(self, *_: object, **__: object) -> None: ...

    cancel = result


async def test_the_end_of_a_task_or_a_chat_is_tried_on_a_full_disk(place: Place, recording: Recording) -> None:
    place.failure = StoreUnwritableError("disk_full", "The disk is full.", "")
    async with asyncio.timeout(10):
        with suppress(UnrecordableError):
            while True:
                recording.require()
                await asyncio.sleep(0.01)
        calls = GuardedCalls(cast("Client", QuickCalls()), recording, patience_s=60)
        assert await calls.making.cancel("create_1")
        await calls.chats.close("a")


async def test_what_is_away_for_a_moment_is_waited_for(place: Place, recording: Recording) -> None:
    place.failure = ConnectionError("It restarts.")
    async with recording.recorded():
        await asyncio.sleep(0.1)
    recording.require()


async def test_a_time_out_of_the_callers_own_stays_one(recording: Recording) -> None:
    with pytest.raises(TimeoutError):
        async with recording.recorded():
            raise TimeoutError
