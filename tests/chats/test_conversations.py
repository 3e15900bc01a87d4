"""Answers by rules, and notices of tasks, in a chat on real tables."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.chats.conversations import ChatParts, Conversations
from engine.chats.submissions import SubmissionRefused, Submissions
from engine.concierge.concierge import Concierge
from engine.registry.matching.matching import Matching
from engine.registry.registry import ToolRegistry
from engine.store.catalog_state import CatalogState
from engine.store.chats import ChatTable
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.groups import GroupTable
from engine.store.messages import MessageTable
from engine.store.routes import RouteTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from toolagent.contracts.calls import Caller
from toolagent.contracts.chats import ChatMessage, ChatReply
from toolagent.contracts.making import MakeRequest, MakeTask
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import BuildTool, RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import StoreUnavailableError, TaskConflictError
from toolagent.core.task_requests import request_key, task_id_for
from toolagent.testing.fake_making import FakeMaking
from toolagent_service.agents.service import announced
from toolagent_service.contracts.chats import Announcement, AnsweredTurn, TaskOutcome
from toolagent_service.making.task_views import begun

BROKEN = ToolManifest(tool_id="broken_one", name="Broken", description="Compress pictures.")


@dataclass
class Desk:
    conversations: Conversations
    registry: ToolRegistry
    tasks: TaskTable
    making: FakeMaking
    database: Database

    async def said(self, message: str, message_id: str = "msg-1") -> ChatReply:
        turn = await self.conversations.begin(ChatMessage(chat_id="w1", message=message, message_id=message_id))
        assert isinstance(turn, AnsweredTurn)
        return turn.reply


def desk_of(database: Database, files: FileStore, tasks: TaskTable) -> Desk:
    tools, routes, groups, making = ToolTable(database), RouteTable(database), GroupTable(database), FakeMaking()
    registry = ToolRegistry(tools, routes)
    concierge = Concierge(Matching(tools, groups, CatalogState(database)), tools, groups, tasks, has_model=True)
    parts = ChatParts(ChatTable(database), MessageTable(database, files), tasks, Submissions(making, tasks, registry), concierge)
    return Desk(Conversations(parts, None, 60), registry, tasks, making, database)


@pytest.fixture
def files(database: Database, tmp_path: Path) -> FileStore:
    return FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "spool", 10_000_000)


@pytest.fixture
async def desk(database: Database, files: FileStore) -> Desk:
    desk = desk_of(database, files, TaskTable(database))
    await desk.registry.register(BROKEN, (LocalSource(host_dir="tools/b", content="file_1"),))
    return desk


async def test_an_answer_by_rules_says_the_request_what_to_do_then_and_that_rules_say_so(desk: Desk) -> None:
    reply = await desk.said("what does broken_one do?")
    lines = reply.response.splitlines()
    assert 'POST /select_tool {"tool_id": "broken_one", "params": {}}' in lines
    assert "- POST /select_tool calls broken_one" in lines
    assert lines[-1] == "(By rules, without a model.)"
    assert (await desk.said("broken_one 怎么用", "msg-2")).response.endswith("(按规则回答,没有使用模型。)")
    assert (await desk.said("Hello!", "msg-3")).response.count("without a model") == 1


async def test_a_task_that_is_begun_is_told_with_its_address_and_one_that_is_not_with_why_alone(desk: Desk) -> None:
    wish = "broken_one answers HTTP 503, please fix it"
    first = await desk.said(wish)
    (task_id,) = first.task_ids
    assert f"- GET /tasks/{task_id} says how far it is" in first.response.splitlines()
    assert "`tracking`" not in first.response
    again = await desk.said(wish, "msg-2")
    why = f"'broken_one' is being repaired already, by {task_id}."
    assert (again.response, again.error) == (f"This cannot be begun: {why}\n\n(By rules, without a model.)", why)
    assert again.task_ids == ()


async def test_every_tool_of_an_answer_is_told(desk: Desk) -> None:
    await desk.registry.register(BROKEN.model_copy(update={"tool_id": "other_one", "name": "Other"}), (LocalSource(host_dir="tools/o"),))
    lines = (await desk.said("which tools compress pictures?")).response.splitlines()
    assert "- broken_one: compress, pictures: Compress pictures." in lines
    assert "- other_one: compress, pictures: Compress pictures." in lines
    listed = (await desk.said("list all tools", "msg-2")).response
    assert "- broken_one: Compress pictures." in listed.splitlines()


@pytest.mark.parametrize(
    ("first", "then"), [("which tools compress pictures?", "how do I call it?"), ("有压缩图片的工具吗", "那怎么调用它?")]
)
async def test_a_message_may_refer_to_the_tool_that_was_spoken_of_last(desk: Desk, first: str, then: str) -> None:
    assert (await desk.said(then, "msg-0")).tools == ()
    assert (await desk.said(first)).tools == ("broken_one",)
    await desk.said("thanks a lot", "msg-2")
    reply = await desk.said(then, "msg-3")
    assert reply.tools == ("broken_one",)
    assert 'POST /select_tool {"tool_id": "broken_one", "params": {}}' in reply.response
    assert await desk.said(then, "msg-3") == reply


@pytest.mark.parametrize(
    ("need", "yes"),
    [
        ("is there a tool that waters my orchids?", "Yes, build it"),
        ("有没有给兰花浇水的工具", "好的,就这样做"),
    ],
)
async def test_what_was_offered_is_made_when_the_next_message_agrees(desk: Desk, need: str, yes: str) -> None:
    assert (await desk.said(yes, "msg-0")).task_ids == ()
    offered = await desk.said(need)
    assert yes.casefold() in offered.response.casefold()
    agreed = await desk.said(yes, "msg-2")
    (task_id,) = agreed.task_ids
    (request,) = desk.making.started.values()
    assert isinstance(request.spec, BuildTool)
    assert (request.task_id, request.spec.description) == (task_id, need)
    assert await desk.said(yes, "msg-2") == agreed
    assert (await desk.said(yes, "msg-3")).task_ids == (), "nothing is offered any more"


async def test_one_of_the_tools_that_were_told_of_is_meant_by_its_place(desk: Desk) -> None:
    await desk.registry.register(BROKEN.model_copy(update={"tool_id": "other_one", "name": "Other"}), (LocalSource(host_dir="tools/o"),))
    told = (await desk.said("which tools compress pictures?")).tools
    assert len(told) == 2
    for place, message in ((1, "the second one"), (0, "how do I call the first one?"), (1, "第二个怎么用?"), (1, "the last one, please")):
        await desk.said("which tools compress pictures?", f"again-{message}")
        assert (await desk.said(message, f"for-{message}")).tools == (told[place],)
    assert (await desk.said("the fifth one", "msg-9")).tools == ()
    assert (await desk.said("and the second one?", "msg-10")).tools == (told[1],), "not of the one that was explained last"


async def test_a_chat_asked_for_its_task_tells_of_its_own(desk: Desk) -> None:
    others = MakeRequest(task_id="create_0a1b2c3f", spec=BuildTool(tool_name="tally", description="Count."))
    await desk.tasks.create(begun(others, datetime.now(UTC)))
    assert "create_0a1b2c3f" in (await desk.said("is it done?")).response
    (task_id,) = (await desk.said("make me a tool that reverses a text", "msg-2")).task_ids
    reply = (await desk.said("is it done?", "msg-3")).response
    assert reply.startswith(f"Task {task_id} is pending")
    assert "create_0a1b2c3f" not in reply


async def test_the_tasks_of_a_tool_are_told(desk: Desk) -> None:
    (task_id,) = (await desk.said("please repair broken_one")).task_ids
    await desk.said("make me a tool that reverses a text", "msg-2")
    reply = (await desk.said("has broken_one been fixed?", "msg-3")).response
    assert reply.startswith(f"The newest tasks: {task_id} (broken_one, pending).")


async def test_the_end_of_a_task_is_told_in_the_language_of_its_wish(desk: Desk) -> None:
    (task_id,) = (await desk.said("帮我做一个反转文本的工具")).task_ids
    outcome = TaskOutcome(task_id=task_id, tool_id="turner", status=TaskState.CANCELLED)
    await desk.conversations.announce(Announcement(chat_id="w1", outcome=outcome))
    (told,) = await ChatTable(desk.database).of_message("w1", f"task-{task_id}")
    assert told.text == f"任务 {task_id} 已取消。"


async def test_a_task_that_nobody_knows_any_more_has_ended(desk: Desk) -> None:
    outcome = await desk.conversations.outcome("create_0a1b2c3d")
    assert outcome is not None
    assert "create_0a1b2c3d is not known any more" in announced(outcome)
    running = MakeRequest(task_id="create_0a1b2c3e", spec=RepairTool(tool_id="broken_one", error="503"))
    await desk.tasks.create(begun(running, datetime.now(UTC)))
    assert await desk.conversations.outcome("create_0a1b2c3e") is None


async def test_a_task_is_named_only_when_it_is_written_down(database: Database, files: FileStore) -> None:
    """Otherwise its chat would take it for forgotten."""

    class Away(TaskTable):
        is_away = True

        async def create(self, task: MakeTask) -> MakeTask:
            if self.is_away:
                raise StoreUnavailableError("The database is away.")
            return await super().create(task)

    tasks = Away(database)
    desk = desk_of(database, files, tasks)
    spec = BuildTool(tool_name="tally", description="Count words.")
    submissions = Submissions(desk.making, tasks, desk.registry)
    with pytest.raises(StoreUnavailableError):
        await submissions.submit("w1", spec, "k")
    tasks.is_away = False
    task_id = await submissions.submit("w1", spec, "k")
    assert [*desk.making.started] == [task_id]
    assert await tasks.get(task_id) is not None


async def test_a_task_that_another_version_began_and_cannot_be_read_is_not_begun_again(database: Database, files: FileStore) -> None:
    """A second task would be paid for too."""

    class Unreadable:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def start(self, request: MakeRequest) -> None:
            self.asked.append(request.task_id)
            raise TaskConflictError(request.task_id)

    desk = desk_of(database, files, TaskTable(database))
    begun = Unreadable()
    with pytest.raises(SubmissionRefused) as refused:
        await Submissions(begun, TaskTable(database), desk.registry).submit("w1", BuildTool(tool_name="tally", description="Count."), "k")
    (task_id,) = begun.asked
    assert task_id in str(refused.value)


async def test_a_task_that_was_begun_by_another_name_is_not_begun_again(database: Database, files: FileStore) -> None:
    """A version that derives other names was installed between the start and the record."""
    tasks = TaskTable(database)
    desk = desk_of(database, files, tasks)
    before, now = (BuildTool(tool_name=name, description="Count words.") for name in ("count_words", "counting_words"))
    key = request_key("w1", "k")
    caller = Caller(caller_id="w1", caller_type="conversation_agent", conversation_id="w1")
    first = MakeRequest(task_id=task_id_for(before, key, 0), spec=before, caller=caller, key=key)
    await desk.making.start(first)
    assert await Submissions(desk.making, tasks, desk.registry).submit("w1", now, "k") == first.task_id
    assert [*desk.making.started] == [first.task_id]
    known = await tasks.get(first.task_id)
    assert known is not None
    assert known.spec == before
