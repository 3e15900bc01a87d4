"""What the rules leave undecided is said to be so: a model decides it, where there is one."""

from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from engine.concierge.answers import Answers
from engine.concierge.concierge import Concierge
from engine.registry.matching.matching import Matching
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from tests.parts import tool_registry
from toolagent.contracts.making import Stage
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import BuildTool
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.concierge import Intent


@pytest_asyncio.fixture
async def concierge(database: Database) -> Concierge:
    tool = ToolManifest(tool_id="sky_painter", name="Sky painter", description="Paints the sky blue. 画出蓝色的天空。")
    await tool_registry(database).register(tool, (LocalSource(host_dir="tools/x"),))
    tools, groups = ToolTable(database), GroupTable(database)
    return Concierge(Matching(tools, groups, CatalogState(database)), tools, groups, TaskTable(database))


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


def test_what_is_nearest_by_its_meaning_is_named_though_it_says_none_of_the_words() -> None:
    tools = [
        ToolManifest(tool_id=name, name=name, description=says) for name, says in (("shrink", "Compresses pictures."), ("pdf", "A file."))
    ]
    reply = Answers(Intent.DISCOVER, "en").tools_found("photo file smaller mail", tools, "make my photo file smaller for a mail")
    assert reply.tool_ids == ("shrink", "pdf")


def test_a_task_that_found_a_tool_says_nothing_of_how_long_one_takes() -> None:
    begun = datetime(2026, 11, 27, tzinfo=UTC)
    tasks = [
        ListedTask(
            task_id="create_00000000", status=TaskState.COMPLETED, type="build_tool", tool_id="x", description="", stage=stage, progress="",
            reason="", cost_usd=0, tokens=0, created_at=begun, started_at=begun, ended_at=begun + timedelta(minutes=minutes),
        )
        for stage, minutes in ((Stage.INSPECT, 0), (Stage.INSPECT, 0), (Stage.ANNOUNCE, 6))
    ]  # fmt: skip
    reply = Answers(Intent.MAKE, "en").to_submit(BuildTool(tool_name="y", description="z"), "z", tasks)
    assert reply.estimated_time == "6 minutes"
