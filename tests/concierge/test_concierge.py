"""The rules report what they leave undecided; a model decides it, if there is one."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from engine.concierge.answers import Answers
from engine.concierge.concierge import Concierge
from engine.concierge.solutions import suggested
from engine.registry.matching.matching import Matching
from engine.runtimes.builtin import builtin_tools, entries
from engine.runtimes.builtin.options import BuiltinOptions
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from tests.conftest import ROOT
from tests.parts import tool_registry
from tests.store.making import task
from toolagent.contracts.agent_chat import CompositeWorkflow, Proposal
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.making import Stage
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.concierge import Intent, Reply

MISSED = {
    "my picture is 8 MB but the form only accepts 500 KB",
    "what does the page https://example.com/news look like?",
    "my photo is too heavy for the website",
    "square root of 1764",
    "order a pizza",
    "把四张图拼成九宫格那样",
}
"""Of `needs.yaml`."""


@pytest_asyncio.fixture
async def concierge(database: Database) -> Concierge:
    tool = ToolManifest(tool_id="sky_painter", name="Sky painter", description="Paints the sky blue. 画出蓝色的天空。")
    await tool_registry(database).register(tool, (LocalSource(host_dir="tools/x", content="file_1"),))
    return concierge_of(database)


def concierge_of(database: Database, *, has_model: bool = True) -> Concierge:
    tools, groups = ToolTable(database), GroupTable(database)
    return Concierge(Matching(tools, groups, CatalogState(database)), tools, groups, TaskTable(database), has_model=has_model)


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        ("The sky is blue.", Intent.UNDECIDED),
        ("蓝色的天空", Intent.UNDECIDED),
        ("I need something for a blue sky", Intent.DISCOVER),
        ("sky_painter", Intent.DETAILS),
        ("Sky painter", Intent.DETAILS),
    ],
)
async def test_words_in_common_with_a_tool_decide_nothing(concierge: Concierge, message: str, intent: Intent) -> None:
    reply = await concierge.answer(message)
    assert (reply.intent, reply.tool_ids) == (intent, ("sky_painter",))


async def test_needs_are_answered_with_the_shipped_tool_that_does_it_or_with_the_offer_to_make_one(database: Database) -> None:
    registry = tool_registry(database)
    for entry in entries(builtin_tools(BuiltinOptions())):
        await registry.register(entry.manifest, entry.sources)
    for tool in json.loads((ROOT / "data/registry.json").read_text("utf-8"))["tools"]:
        await registry.register(ToolManifest.model_validate(tool), (LocalSource(host_dir="tools/x"),))
    groups = json.loads((ROOT / "data/groups.json").read_text("utf-8"))["groups"]
    await GroupTable(database).replace([ToolGroup.model_validate(group) for group in groups])
    concierge = concierge_of(database)
    needs = yaml.safe_load(Path(__file__).with_name("needs.yaml").read_text("utf-8"))
    missed = {one["need"] for one in needs if not names(await concierge.answer(one["need"]), one["tools"])}
    assert missed <= MISSED


def names(reply: Reply, tools: list[str]) -> bool:
    if not tools:
        return isinstance(reply.solution, Proposal)
    group = reply.solution.base_tools if isinstance(reply.solution, CompositeWorkflow) else ()
    return not {*tools}.isdisjoint((*reply.tool_ids[:1], *group))


def test_what_is_nearest_by_its_meaning_is_named_though_it_says_none_of_the_words() -> None:
    tools = [
        ToolManifest(tool_id=name, name=name, description=says) for name, says in (("shrink", "Compresses pictures."), ("pdf", "A file."))
    ]
    reply = Answers(Intent.DISCOVER, "en").tools_found("photo file smaller mail", tools, "make my photo file smaller for a mail")
    assert reply.tool_ids == ("shrink", "pdf")


async def test_tasks_that_found_a_tool_say_nothing_of_how_long_one_takes_however_many_they_are(
    concierge: Concierge, database: Database
) -> None:
    begun = datetime(2026, 11, 27, tzinfo=UTC)
    ended = [(Stage.ANNOUNCE, 6), *[(Stage.INSPECT, 0)] * 25]
    for number, (stage, minutes) in enumerate(ended):
        one = task(number, later_s=number + 1).model_copy(
            update={"status": TaskState.COMPLETED, "stage": stage, "started_at": begun, "ended_at": begun + timedelta(minutes=minutes)}
        )
        await TaskTable(database).create(one)
    reply = await concierge.answer("Build a tool that counts the words of a text")
    assert reply.estimated_time == "6 minutes"


@pytest.mark.usefixtures("concierge")
@pytest.mark.parametrize(
    ("message", "time"),
    [
        ("帮我创建一个文本摘要工具", None),
        ("sky_painter answers HTTP 503, please fix it", None),
        ("turn github.com/user/my-project into a tool", "2-3 minutes"),
    ],
)
async def test_without_a_model_no_time_is_promised_for_what_only_a_model_can_do(database: Database, message: str, time: str | None) -> None:
    reply = await concierge_of(database, has_model=False).answer(message)
    assert reply.task is not None
    assert reply.estimated_time == time
    assert any("TOOL_AGENT_MODEL" in step for step in reply.next_steps) is (time is None)


async def test_a_repository_is_near_no_tool_because_of_its_address(concierge: Concierge, database: Database) -> None:
    pages = ToolManifest(tool_id="opener", name="Opener", description="Opens a page.")
    await tool_registry(database).register(pages, (LocalSource(host_dir="tools/y", content="file_2"),))
    reply = await concierge.answer("将该项目 https://github.com/user/project 部署为 HTTP API 工具")
    assert (reply.task is not None, reply.tool_ids) == (True, ())


def test_the_example_of_a_run_names_the_server_that_it_runs_on() -> None:
    run = next(
        entry.manifest for entry in entries(builtin_tools(BuiltinOptions())) if entry.manifest.tool_id == "runcomfy_workflow_executor"
    )
    assert "server_id" in suggested(run, "").usage_example.params
