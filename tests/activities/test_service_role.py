"""The functions of the model of conversations, on real tables."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from activities.agent_tool import AgentToolRefused, AgentToolUnavailable, Used
from activities.agents.role import PendingUse
from activities.agents.service import ServiceRole
from engine.chats.desk import Tables
from engine.chats.submissions import Submissions
from engine.chats.told import Told
from engine.registry.matching.matching import Matching
from engine.registry.registry import ToolRegistry
from engine.store.catalog_state import CatalogState
from engine.store.chats import ChatTable
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.routes import RouteTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from toolagent.contracts.chats import Chunk
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import BuiltinSource
from toolagent.testing.fake_making import FakeMaking
from toolagent.validation.schemas import schema_faults
from toolagent_service.contracts.agent import ToolRun
from toolagent_service.contracts.model import ToolUse

SNAPSHOT = Path(__file__).with_name("chat_offers.json")
TALLY: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "tally", "description": "Count the words of a text."}


class Role:
    """The role on a database, called as the activity calls it."""

    def __init__(self, database: Database) -> None:
        self.making, self.tasks, self.chats = FakeMaking(), TaskTable(database), ChatTable(database)
        tools, routes, groups = ToolTable(database), RouteTable(database), GroupTable(database)
        self.registry = ToolRegistry(tools, routes)
        matching = Matching(tools, groups, CatalogState(database))
        submissions = Submissions(self.making, self.tasks, self.registry)
        tables = Tables(matching, self.registry, groups, routes, self.tasks, TaskNoteTable(database), submissions)
        self.role = ServiceRole(tables, self.chats, Told(self.chats).asked)

    async def use(self, name: str, given: dict[str, JsonValue] | None = None, key: str = "use-1") -> Used:
        given = given or {}
        run = ToolRun(
            conversation_id=await self.chats.conversation("a/b", 1),
            position=2,
            tool_use_id=key,
            name=name,
            summary=name,
            remaining_s=60,
            role="service",
        )
        fault = self.role.fault_in(ToolUse(id=key, name=name, input=given))
        if fault:
            raise AgentToolRefused(fault)
        return await self.role.use(given, PendingUse(run, key, 60, lambda _: None))


@pytest.fixture
async def role(database: Database) -> Role:
    role = Role(database)
    await role.chats.say("a/b", "msg-1", "Hello.")
    echo = ToolManifest(tool_id="echo", name="Echo", description="Gives back what it gets.", category="text")
    await role.registry.register(echo, (BuiltinSource(handler="echo"),))
    return role


def test_they_are_the_six_of_the_specification(request: pytest.FixtureRequest) -> None:
    """`pytest tests/api tests/activities --update-snapshots` writes the snapshot."""
    tables: Tables = object.__new__(Tables)
    offers = ServiceRole(tables, object.__new__(ChatTable), Told(object.__new__(ChatTable)).asked).offers
    told = [offer.model_dump(mode="json") for offer in offers]
    if request.config.getoption("--update-snapshots", default=False):
        SNAPSHOT.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    assert told == json.loads(SNAPSHOT.read_text())
    assert [schema_faults(offer.input_schema) for offer in offers] == [()] * 6


async def test_tools_are_found_shown_and_remembered(role: Role) -> None:
    found = await role.use("list_tools", {"keyword": "echo"})
    assert (found.value["total"], found.tool_ids) == (1, ("echo",))
    details = await role.use("get_tool_details", {"tool_id": "echo"})
    assert (details.value["state"], details.tool_ids) == ("stopped", ("echo",))
    with pytest.raises(AgentToolRefused, match="Did you mean echo"):
        await role.use("get_tool_details", {"tool_id": "ecko"})
    assert (await role.use("list_groups")).value == {"groups": []}
    runtimes = (await role.use("list_backend_runtimes")).value["backend_runtimes"]
    assert isinstance(runtimes, list)
    assert [one["tool_count"] for one in runtimes if isinstance(one, dict)] == [1, 0, 0]
    events = await role.chats.events_after("a/b", 0)
    used = [Chunk.model_validate(event.data) for event in events if event.event.value == "chunk"]
    assert [chunk.type for chunk in used[:2]] == ["tool_use", "tool_result"]


async def test_a_task_is_begun_once_for_each_use(role: Role) -> None:
    first = await role.use("submit_task", TALLY)
    assert await role.use("submit_task", TALLY) == first
    other = await role.use("submit_task", TALLY, "use-2")
    assert other.task_ids != first.task_ids
    assert {*role.making.started} == {*first.task_ids, *other.task_ids}
    caller = role.making.started[first.task_ids[0]].caller
    assert (caller.caller_id, caller.caller_type) == ("a/b", "conversation_agent")
    status = await role.use("check_task_status", {"task_id": first.task_ids[0]})
    assert (status.value["status"], status.value["tool_id"]) == ("pending", "tally")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"type": "build"}, "'type'"),
        ({"type": "build_tool", "description": "x"}, "tool_name"),
        ({"type": "build_tool", "tool_name": "Tally!", "description": "x"}, "tool_name"),
        ({"type": "github_deploy", "tool_name": "tally"}, "repo_url"),
        ({"type": "repair_tool", "tool_id": "nobody"}, "There is no tool 'nobody'"),
        ({"type": "repair_tool", "tool_id": "echo"}, "echo"),
        ({**TALLY, "words": "many"}, "there is no 'words'"),
        ({**TALLY, "examples": [{"input": 1}]}, "examples"),
    ],
)
async def test_a_task_book_that_is_none_is_told_and_begins_nothing(role: Role, given: dict[str, JsonValue], told: str) -> None:
    with pytest.raises(AgentToolRefused) as refused:
        await role.use("submit_task", given)
    assert told in str(refused.value)
    assert role.making.started == {}


async def test_while_temporal_is_away_the_use_is_tried_again(role: Role) -> None:
    role.making.away = True
    with pytest.raises(AgentToolUnavailable):
        await role.use("submit_task", TALLY)


async def test_a_task_that_nobody_knows_is_told(role: Role) -> None:
    with pytest.raises(AgentToolRefused, match="There is no task"):
        await role.use("check_task_status", {"task_id": "create_00000000"})
