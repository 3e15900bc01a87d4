"""The attempt that gets an answer of a model records it; if it cannot, the workflow does."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection
from temporalio.testing import ActivityEnvironment

from activities import ask_model
from activities.agents.models import Models
from activities.agents.service import ServiceRole
from activities.answer_turn import AnswerTurn
from activities.ask_model import AskModel
from engine.chats.conversations import ChatParts, Conversations
from engine.chats.desk import Tables
from engine.chats.submissions import Submissions
from engine.chats.told import Told
from engine.registry.registry import ToolRegistry
from engine.roles.prices import Prices
from engine.roles.prompts import Prompts
from engine.roles.provider import unheard
from engine.store.chats import ChatTable
from engine.store.content.folder import FolderContent
from engine.store.database import CommitUnknownError, Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.routes import RouteTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from engine.store.tools import ToolTable
from engine.tasks.transcript import Transcript
from tests.activities.asking import PROMPTS
from toolagent.contracts.chats import ChatEventKind, ChatMessage, ChatTurn, Chunk
from toolagent.core.failures import StoreUnavailableError
from toolagent.testing.fake_making import FakeMaking
from toolagent_service.agents import loop
from toolagent_service.contracts.agent import AgentRequest, LoopState
from toolagent_service.contracts.chats import AnswerAsk, AnswerNote, TurnEnded
from toolagent_service.contracts.model import Block, ModelRequest, ModelTurn, Text, ToolUse, Usage

SAID = ChatMessage(chat_id="w1", message="Which tools?", message_id="msg-1")
ECHO = Text(text="There is echo.")


@dataclass
class Model:
    """A model that answers with `content`."""

    content: tuple[Block, ...] = (ECHO,)
    name: str = "scripted"
    model: str = "m"
    takes_s: float = 0.0
    asked: list[ModelRequest] = field(default_factory=list[ModelRequest])

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None] = unheard) -> ModelTurn:  # noqa: ARG002 - as the protocol has it
        self.asked.append(request)
        hear("".join(block.text for block in self.content if isinstance(block, Text)))
        await asyncio.sleep(self.takes_s)
        reason = "tool_use" if isinstance(self.content[-1], ToolUse) else "end_turn"
        return ModelTurn(content=self.content, stop_reason=reason, model=self.model, usage=Usage())

    async def aclose(self) -> None: ...


class Failing(ChatTable):
    """A store that records no answer while there are `failures`."""

    def __init__(self, database: Database, *failures: Exception) -> None:
        super().__init__(database)
        self._failures, self._within = [*failures], list[Exception]()
        self.next_times: list[Exception] = []
        """Of writing within another transaction, after the first time."""

    async def answer(self, chat_id: str, answer: ChatTurn, *, ends: bool = True) -> ChatTurn:
        if self._failures:
            raise self._failures.pop()
        return await super().answer(chat_id, answer, ends=ends)

    async def answer_within(self, connection: AsyncConnection, chat_id: str, answer: ChatTurn, unheard: Sequence[Chunk]) -> ChatTurn:
        stands = await super().answer_within(connection, chat_id, answer, unheard)
        if self._failures:
            raise self._failures.pop()
        self._within, now = self.next_times, self._within
        if now:
            raise now.pop()
        return stands


class Unsure(Database):
    """A database that, once armed, reports an unknown outcome of one commit."""

    def __init__(self, url: str, *, is_committed: bool) -> None:
        super().__init__(url)
        self.is_armed, self._is_committed = False, is_committed

    @asynccontextmanager
    async def write(self, *, alone: str | None = None) -> AsyncGenerator[AsyncConnection]:
        fails, self.is_armed = self.is_armed, False
        async with super().write(alone=alone) as connection:
            yield connection
            if fails and not self._is_committed:
                raise CommitUnknownError("The connection was lost.")
        if fails:
            raise CommitUnknownError("The connection was lost.")


class Slow(ChatTable):
    async def add_chunks(self, conversation_id: str, chunks: Sequence[Chunk]) -> None:
        await asyncio.sleep(1.0)
        await super().add_chunks(conversation_id, chunks)


class Stage:
    """A chat with the message `SAID`, and the step that answers it."""

    def __init__(self, database: Database, folder: Path, model: Model, chats: ChatTable | None = None) -> None:
        self.chats, self._model = chats or ChatTable(database), model
        files = FileStore(database, FolderContent(folder / "content"), folder / "spool", 1 << 20)
        messages, tasks = MessageTable(database, files), TaskTable(database)
        registry = ToolRegistry(ToolTable(database), RouteTable(database))
        turns, notes = ModelTurnTable(database, messages), TaskNoteTable(database)
        transcript = Transcript(messages, ToolOutcomeTable(database, files), turns, notes, tasks)
        tables: Tables = object.__new__(Tables)
        role = ServiceRole(tables, self.chats, Told(self.chats).asked)
        self.conversations = Conversations(ChatParts(self.chats, messages, tasks, Submissions(FakeMaking(), tasks, registry)), None, 60)
        self.step = AnswerTurn(AskModel(Models(model, Prompts(PROMPTS), Prices()), transcript, (role,)), self.conversations)

    async def answered(self) -> AnswerNote:
        """The note of one attempt."""
        return await ActivityEnvironment().run(self.step.answer_turn, await self.asked())

    async def asked(self) -> AnswerAsk:
        said = await self.chats.say(SAID.chat_id, SAID.message_id, SAID.message)
        request = AgentRequest(conversation_id=said.conversation_id, prompt="service", role="service")
        step = loop.next_step(request, LoopState(started_s=0), 0)
        assert isinstance(step, loop.AskModel)
        ended = TurnEnded(said=SAID, number=1, conversation_id=said.conversation_id, position=step.ask.position + 1, known_tools=("echo",))
        return AnswerAsk(ask=step.ask, ended=ended)

    async def told(self) -> list[str]:
        return [turn.text for turn in await self.chats.turns(SAID.chat_id)]


async def test_an_answer_is_written_down_once_and_paid_once_however_often_the_step_is_done(database: Database, tmp_path: Path) -> None:
    model = Model()
    stage = Stage(database, tmp_path, model)
    first, again = [await stage.answered() for _ in range(2)]
    assert first.reply is not None
    assert (first.reply.response, first.reply.tools) == (ECHO.text, ("echo",))
    assert (again, len(model.asked), await stage.told()) == (first, 1, [SAID.message, ECHO.text])


async def test_what_wants_a_function_is_no_answer(database: Database, tmp_path: Path) -> None:
    stage = Stage(database, tmp_path, Model(content=(ECHO, ToolUse(id="use-1", name="list_tools"))))
    assert ((await stage.answered()).reply, await stage.told()) == (None, [SAID.message])


async def test_what_nobody_heard_is_told_once_before_the_answer(database: Database, tmp_path: Path) -> None:
    stage = Stage(database, tmp_path, Model())
    await stage.answered()
    said, heard, answer, done = await stage.chats.events_after(SAID.chat_id, 0)
    assert [one.event for one in (said, answer, done)] == [ChatEventKind.MESSAGE, ChatEventKind.MESSAGE, ChatEventKind.DONE]
    assert (heard.event, heard.data) == (ChatEventKind.CHUNK, {"type": "text", "data": ECHO.text})


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("failures", [(), (ZeroDivisionError(),)])
async def test_a_commit_that_nobody_knows_of_is_made_good(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_committed: bool, failures: tuple[Exception, ...]
) -> None:
    monkeypatch.setattr(ask_model, "_STORE_PAUSE_S", 0.0)
    model, unsure = Model(), Unsure(database.url, is_committed=is_committed)
    try:
        chats = Failing(unsure)
        stage = Stage(unsure, tmp_path, model, chats)
        asked = await stage.asked()
        unsure.is_armed, chats.next_times = True, [*failures]
        note = await ActivityEnvironment().run(stage.step.answer_turn, asked)
        assert note.reply is not None
        assert (await stage.told(), len(model.asked)) == ([SAID.message, ECHO.text], 1)
    finally:
        await unsure.close()


async def test_heartbeats_go_on_while_what_was_heard_is_written_down(database: Database, tmp_path: Path) -> None:
    """Without heartbeats, another attempt would pay for the turn again."""
    beats: list[object] = []
    stage = Stage(database, tmp_path, Model(takes_s=0.3), Slow(database))
    asked, environment = await stage.asked(), ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)
    await environment.run(stage.step.answer_turn, asked)
    assert beats


@pytest.mark.parametrize("failure", [StoreUnavailableError("The database is away."), ZeroDivisionError()])
async def test_an_answer_that_cannot_be_written_down_is_left_to_the_workflow(
    database: Database, tmp_path: Path, failure: Exception
) -> None:
    """The turn is paid for, and stays recorded."""
    model = Model()
    stage = Stage(database, tmp_path, model, Failing(database, failure, ZeroDivisionError()))
    note = await stage.answered()
    assert (note.reply, note.note.said, await stage.told()) == (None, ECHO.text, [SAID.message])
    reply = await stage.conversations.end((await stage.asked()).ended)
    assert (reply.response, await stage.told()) == (ECHO.text, [SAID.message, ECHO.text])
    assert ((await stage.answered()).reply, len(model.asked)) == (reply, 1)


async def test_an_answer_waits_for_a_database_that_is_away(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_model, "_STORE_PAUSE_S", 0.0)
    stage = Stage(database, tmp_path, Model(), Failing(database, StoreUnavailableError("The database is away.")))
    assert (await stage.answered()).reply is not None
    assert await stage.told() == [SAID.message, ECHO.text]
