"""What MCP servers offer besides tools: prompts, resources, completions."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.calling.upstreams import Item, Upstreams
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Offer
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.tools import ToolTable
from tests.runtimes.conftest import Routes
from tests.runtimes.test_mcp_dialogue import TOOL, WAYS, fixture_server
from toolagent.contracts.call_messages import Listener
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import McpSource

TEMPLATES = ["test://template/{id}/data", "test://touch/{name}", "test://long/{size}"]


_SHORT = ("stdio 2025-11-25", "http 2026-07-28")
"""Each transport and each revision; test_mcp_dialogue.py has them all."""


@pytest_asyncio.fixture(
    params=[pytest.param(way, marks=() if way in _SHORT else pytest.mark.long) for way in WAYS], scope="module", loop_scope="module"
)
async def supervised(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncGenerator[tuple[Upstreams, Supervisor]]:
    """The fixture, a missing server, and one whose tool is not active."""
    folder = tmp_path_factory.mktemp("upstreams")
    database = Database(f"sqlite+aiosqlite:///{shutil.copyfile(empty_database, folder / 'test.db')}")
    tools = ToolTable(database)
    with pytest.MonkeyPatch.context() as patch:
        # A busy machine starts no server in five seconds.
        patch.setattr("engine.calling.upstreams._LISTED_S", 20.0)
        async with fixture_server(str(request.param), folder) as (runtime, source):
            supervisor = Supervisor({"mcp": runtime}, Routes(), "here")
            upstreams = Upstreams(tools, CatalogState(database), supervisor)
            for name in ("one", "two"):
                await tools.put(_entry(TOOL, name, source.model_copy(update={"process": "fixture"})), "registered")
            await tools.put(_entry(TOOL, "lost", McpSource(tool_name="x", url="http://127.0.0.1:1/mcp")), "registered")
            off = TOOL.model_copy(update={"status": ToolStatus.INACTIVE})
            await tools.put(_entry(off, "off", source.model_copy(update={"process": "off"})), "registered")
            with runtime.changes.heard_by(upstreams.note_change):
                yield upstreams, supervisor
            await upstreams.close()
            await supervisor.close()
    await database.close()


@pytest.fixture(scope="module")
def upstreams(supervised: tuple[Upstreams, Supervisor]) -> Upstreams:
    return supervised[0]


def _entry(manifest: ToolManifest, tool_id: str, source: McpSource) -> ToolEntry:
    return ToolEntry(manifest=manifest.model_copy(update={"tool_id": tool_id}), sources=(source,))


async def _result(upstreams: Upstreams, method: str, **params: JsonValue) -> Item:
    answer = await upstreams.ask("fixture", method, params, Listener(answers=("elicitation",)))
    assert "error" not in answer, answer
    return cast("Item", answer["result"])


@pytest.mark.asyncio(loop_scope="module")
async def test_what_servers_list_and_answer_passes_through(upstreams: Upstreams) -> None:
    assert await upstreams.servers() == ("fixture", "http://127.0.0.1:1/mcp")
    prompts = await upstreams.listed("prompts")
    assert {one.server for one in prompts} == {"fixture"}
    assert "test_prompt_with_arguments" in {str(one.item["name"]) for one in prompts}
    assert "test://static-text" in {str(one.item["uri"]) for one in await upstreams.listed("resources")}
    assert [one.item["uriTemplate"] for one in await upstreams.listed("resourceTemplates")] == TEMPLATES
    got = await _result(upstreams, "prompts/get", name="test_prompt_with_arguments", arguments={"arg1": "a", "arg2": "b"})
    assert cast("list[dict[str, Item]]", got["messages"])[0]["content"]["text"] == "Prompt with arguments: arg1='a', arg2='b'"
    read = await _result(upstreams, "resources/read", uri="test://template/7/data")
    assert "7" in str(cast("list[Item]", read["contents"])[0]["text"])
    argument: Item = {"name": "arg1", "value": "pa"}
    completed = await _result(upstreams, "completion/complete", ref={"type": "ref/prompt", "name": "test_simple_prompt"}, argument=argument)
    assert cast("Item", completed["completion"])["values"] == ["paris", "park", "party"]
    assert await _result(upstreams, "resources/subscribe", uri="test://watched-resource") == {}
    assert await _result(upstreams, "resources/unsubscribe", uri="test://watched-resource") == {}


@pytest.mark.asyncio(loop_scope="module")
async def test_what_goes_wrong_is_an_error_of_the_protocol(upstreams: Upstreams) -> None:
    for server, method, params, code in (
        ("fixture", "resources/read", {"uri": "test://nothing"}, None),
        ("fixture", "tools/call", {"name": "test_simple_text"}, -32601),
        ("nobody", "prompts/list", {}, -32603),
        ("http://127.0.0.1:1/mcp", "prompts/list", {}, -32603),
    ):
        answer = await upstreams.ask(server, method, cast("Item", params))
        told = cast("Item", answer["error"])["code"]
        assert told == code if code is not None else isinstance(told, int)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_resource_that_is_too_large_is_not_passed_on(upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtimes.mcp.offers._LARGEST", 2000)
    assert "error" not in await upstreams.ask("fixture", "resources/read", {"uri": "test://long/1500"})
    answer = await upstreams.ask("fixture", "resources/read", {"uri": "test://long/2000"})
    assert "larger than 2000 bytes" in str(cast("Item", answer["error"])["message"])


class SlowServers(Supervisor):
    """One server, which lists `pages` once it `may` answer."""

    pages: list[Item]
    may: asyncio.Event

    async def offered(self, entry: ToolEntry, offer: Offer) -> dict[str, JsonValue]:  # noqa: ARG002 - as the supervisor's
        await self.may.wait()
        at = int(str(offer.params.get("cursor", 0)))
        return {"result": {"prompts": [self.pages[at]], "nextCursor": str(at + 1) if at + 1 < len(self.pages) else None}}


@pytest_asyncio.fixture
async def slow(routes: Routes, database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[SlowServers, Upstreams]]:
    monkeypatch.setattr("engine.calling.upstreams._LISTED_S", 0.2)
    servers, tools = SlowServers({}, routes, "here"), ToolTable(database)
    servers.may, servers.pages = asyncio.Event(), [{"name": "one"}]
    manifest = ToolManifest(tool_id="slow", name="Slow", description="Slow.", category="test")
    await tools.put(_entry(manifest, "slow", McpSource(tool_name="x", url="http://127.0.0.1:1/mcp")), "registered")
    upstreams = Upstreams(tools, CatalogState(database), servers)
    yield servers, upstreams
    await upstreams.close()
    await servers.close()


async def _names(upstreams: Upstreams) -> list[JsonValue]:
    return [one.item["name"] for one in await upstreams.listed("prompts")]


async def test_a_slow_server_is_waited_for_once(slow: tuple[SlowServers, Upstreams], monkeypatch: pytest.MonkeyPatch) -> None:
    servers, upstreams = slow
    assert await _names(upstreams) == []
    monkeypatch.setattr("engine.calling.upstreams._LISTED_S", 3600.0)
    assert await _names(upstreams) == []
    servers.may.set()
    async with asyncio.timeout(60):
        while await _names(upstreams) != ["one"]:  # noqa: ASYNC110 - the listing goes on behind
            await asyncio.sleep(0)
    servers.pages = [{"name": "two"}]
    upstreams.note_change("http://127.0.0.1:1/mcp", "notifications/prompts/list_changed", {})
    assert await _names(upstreams) == ["two"]
    servers.may.clear()
    monkeypatch.setattr("engine.calling.upstreams._FRESH_S", -1.0)
    assert await _names(upstreams) == ["two"]


async def test_a_server_that_changes_without_end_makes_only_itself_wait(
    slow: tuple[SlowServers, Upstreams], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers, upstreams = slow
    servers.may.set()
    assert await _names(upstreams) == ["one"]
    servers.may.clear()
    monkeypatch.setattr("engine.calling.upstreams._LISTED_S", 3600.0)
    url = "http://127.0.0.1:1/mcp"
    for server, method in (("another", "prompts"), (url, "tools"), (url, "resources")):
        upstreams.note_change(server, f"notifications/{method}/list_changed", {})
    assert await _names(upstreams) == ["one"]
    servers.may.set()
    upstreams.note_change(url, "notifications/prompts/list_changed", {})
    assert await _names(upstreams) == ["one"]
    # It is asked again, and what it listed is given until it answers.
    servers.may.clear()
    upstreams.note_change(url, "notifications/prompts/list_changed", {})
    assert await _names(upstreams) == ["one"]
    servers.may.set()
    servers.pages = [{"name": "two"}]
    assert await _names(upstreams) == ["two"]


async def test_a_listing_ends_before_the_page_that_makes_it_too_large(slow: tuple[SlowServers, Upstreams]) -> None:
    servers, upstreams = slow
    servers.may.set()
    servers.pages = [{"name": "one"}, {"name": "x" * 2 * 1_048_576}, {"name": "three"}]
    assert await _names(upstreams) == ["one"]


@pytest.mark.asyncio(loop_scope="module")
async def test_that_a_resource_has_changed_is_heard_also_when_its_server_was_started_anew(
    supervised: tuple[Upstreams, Supervisor],
) -> None:
    upstreams, supervisor = supervised
    heard = asyncio.Event()

    def note(method: str, params: Mapping[str, JsonValue]) -> None:
        if method == "notifications/resources/updated" and params.get("uri") == "test://watched-resource":
            heard.set()

    with upstreams.heard_by(note):
        await _result(upstreams, "resources/subscribe", uri="test://watched-resource")
        for is_new in (False, True):
            if is_new:
                await supervisor.stop("one")
            heard.clear()
            async with asyncio.timeout(60):
                while not heard.is_set():
                    # A server of 2026 does not say when it has begun to watch.
                    await _result(upstreams, "resources/read", uri="test://touch/watched-resource")
