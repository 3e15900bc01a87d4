"""Prompts, resources and completions of registered servers, through the MCP server."""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from api.mcp.changes import Changes
from api.mcp.offers.passing import Passing
from api.mcp.offers.watching import Watching
from engine.calling.upstreams import Listed
from engine.store.database import Database
from engine.store.mcp_sessions import McpSessionTable
from tests.api.conftest import House, with_doors
from tests.api.mcp_client import NEW, OLD, Caller, calling
from tests.api.mcp_streams import opened
from toolagent.contracts.call_messages import Listener
from toolagent.contracts.manifest import ToolGroup
from toolagent_service.contracts.mcp import McpSession

LISTED: dict[str, list[Listed]] = {
    "prompts": [Listed("one", {"name": "pair"}), Listed("one", {"name": "plain"}), Listed("two", {"name": "plain"})],
    "resources": [Listed("one", {"uri": "test://a", "name": "a"})],
    "resourceTemplates": [Listed("two", {"uriTemplate": "test://row/{id}", "name": "row"})],
}


@dataclass
class Servers:
    """Two servers with these lists, which repeat requests."""

    asked: list[tuple[str, str, Mapping[str, JsonValue]]] = field(default_factory=list[tuple[str, str, Mapping[str, JsonValue]]])
    listeners: list[Callable[[str, Mapping[str, JsonValue]], None]] = field(
        default_factory=list[Callable[[str, Mapping[str, JsonValue]], None]]
    )

    async def servers(self) -> tuple[str, ...]:
        return ("one", "two")

    async def listed(self, kind: str) -> tuple[Listed, ...]:
        return tuple(LISTED[kind])

    async def ask(
        self,
        server: str,
        method: str,
        params: Mapping[str, JsonValue],
        listens: Listener | None = None,  # noqa: ARG002 - as the door calls it
    ) -> dict[str, JsonValue]:
        self.asked.append((server, method, params))
        match method, params.get("uri"):
            case "resources/read", "test://a":
                return {"result": {"contents": [{"uri": "test://a", "text": "A"}]}}
            case "resources/read", _:
                return {"error": {"code": -32002, "message": "It is gone."}}
            case "prompts/get", _:
                return {"result": {"messages": [{"role": "user", "content": {"type": "text", "text": f"{server}: {params['name']}"}}]}}
            case _:
                return {"result": {"completion": {"values": [server]}}}

    @contextmanager
    def heard_by(self, listener: Callable[[str, Mapping[str, JsonValue]], None]) -> Generator[None]:
        self.listeners.append(listener)
        yield
        self.listeners.remove(listener)


@pytest.fixture(params=[OLD, NEW])
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_a_prompt_whose_name_is_taken_has_that_of_its_server_before_it(stocked: House, revision: str) -> None:
    await stocked.groups.replace([ToolGroup(group_id="pair", name="Pair", tool_ids=("echo",))])
    async with calling(with_doors(stocked, upstreams=Servers()), revision) as client:
        names = [prompt["name"] for prompt in (await client.result("prompts/list"))["prompts"]]
        assert names == ["pair", "one__pair", "plain", "two__plain"]
        for name, text in (("one__pair", "one: pair"), ("two__plain", "two: plain")):
            (message,) = (await client.result("prompts/get", name=name))["messages"]
            assert message["content"]["text"] == text


async def test_resources_and_templates_pass_through(stocked: House, revision: str) -> None:
    servers = Servers()
    async with calling(with_doors(stocked, upstreams=servers), revision) as client:
        assert (await client.result("resources/list"))["resources"][-1]["uri"] == "test://a"
        assert (await client.result("resources/templates/list"))["resourceTemplates"][-1]["uriTemplate"] == "test://row/{id}"
        assert (await client.result("resources/read", uri="test://a"))["contents"] == [{"uri": "test://a", "text": "A"}]
        assert (await client.error("resources/read", uri="test://row/7"))["code"] == (-32002 if revision == OLD else -32602)
        assert [server for server, _, _ in servers.asked] == ["one", "two"]
        ref: dict[str, Any] = {"type": "ref/prompt", "name": "two__plain"}
        completed = await client.result("completion/complete", ref=ref, argument={"name": "x", "value": ""})
        assert completed["completion"]["values"] == ["two"]
        assert servers.asked[-1][2]["ref"] == {"type": "ref/prompt", "name": "plain"}


@pytest.mark.parametrize("most", [1, 100])
async def test_resources_are_listed_in_pages(stocked: House, revision: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.mcp.catalog.PAGE", most)
    monkeypatch.setattr("api.mcp.offers.resources.PAGE", most)
    uris = [f"test://{number:03}" for number in range(210 if most == 100 else 3)]
    monkeypatch.setitem(LISTED, "resources", [Listed("one", {"uri": uri, "name": uri}) for uri in reversed(uris)])
    async with calling(with_doors(stocked, upstreams=Servers()), revision) as client:
        pages = [await client.result("resources/list")]
        while (cursor := pages[-1].get("nextCursor")) is not None:
            pages.append(await client.result("resources/list", cursor=cursor))
        listed = [one["uri"] for page in pages for one in page["resources"]]
        own = [one["uri"] for one in (await client.result("resources/list"))["resources"] if one["uri"].startswith("toolagent:")]
        assert [uri for uri in listed if uri.startswith("test:")] == uris
        assert (len(listed), len({*listed})) == (len(uris) + len([u for u in listed if u.startswith("toolagent:")]), len(listed))
        assert (own != [], max(len(page["resources"]) for page in pages)) == (True, most)
        for cursor in ("?", "eA", pages[0]["nextCursor"][:-3] + "%%%"):
            assert (await client.error("resources/list", cursor=cursor))["code"] == -32602


async def test_what_is_ours_and_what_takes_every_uri_stays_with_us(stocked: House, revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [
        "{+all}",
        "toolagent://tools/{x}",
        "TOOLAGENT:{+x}",
        "t:" + "-".join(f"{{v{at}}}" for at in range(17)),
        "t:" + "a" * 1000 + "{x}",
    ]
    templates = [Listed("one", {"uriTemplate": template, "name": "bad"}) for template in bad]
    monkeypatch.setitem(LISTED, "resourceTemplates", templates)
    monkeypatch.setitem(LISTED, "resources", [Listed("one", {"uri": "toolagent://tools/weather", "name": "bad"})])
    servers = Servers()
    async with calling(with_doors(stocked, upstreams=servers), revision) as client:
        names = [one["name"] for one in (await client.result("resources/templates/list"))["resourceTemplates"]]
        assert "bad" not in names + [one["name"] for one in (await client.result("resources/list"))["resources"]]
        ref, argument = {"type": "ref/resource", "uri": "toolagent://tools/{tool_id}"}, {"name": "tool_id", "value": "ech"}
        assert (await client.result("completion/complete", ref=ref, argument=argument))["completion"]["values"] == ["echo"]
        for uri in ("t:a", "toolagent://nothing"):
            await client.error("resources/read", uri=uri)
        assert servers.asked == []


async def test_a_uri_of_more_than_2048_characters_is_refused(stocked: House) -> None:
    uri = "test://row/" + "x" * 2048
    async with calling(with_doors(stocked, upstreams=Servers()), OLD) as client:
        for method in ("resources/read", "resources/subscribe"):
            assert (await client.error(method, uri=uri))["code"] == -32602
        ref = {"type": "ref/resource", "uri": uri}
        assert (await client.error("completion/complete", ref=ref, argument={"name": "x", "value": ""}))["code"] == -32602


async def test_a_listing_of_one_page_takes_no_cursor(stocked: House, revision: str) -> None:
    async with calling(stocked.dependencies, revision) as client:
        for method in ("prompts/list", "resources/templates/list", "resources/list"):
            assert (await client.error(method, cursor="?"))["code"] == -32602


async def test_a_narrowed_url_reaches_nothing_else(stocked: House, revision: str) -> None:
    await stocked.groups.replace([ToolGroup(group_id="pair", name="Pair", tool_ids=("echo",))])
    servers, argument = Servers(), {"name": "tool_id", "value": "ech"}
    async with calling(with_doors(stocked, upstreams=servers), revision, path="/mcp?group=other") as client:
        for name in ("pair", "plain"):
            await client.error("prompts/get", name=name)
        uris = ("toolagent://tools/echo", "test://a")
        for uri in uris:
            await client.error("resources/read", uri=uri)
            if revision == OLD:
                await client.error("resources/subscribe", uri=uri)
        refs = ({"type": "ref/resource", "uri": "toolagent://tools/{tool_id}"}, {"type": "ref/prompt", "name": "plain"})
        for ref in refs:
            assert (await client.result("completion/complete", ref=ref, argument=argument))["completion"]["values"] == []
        if revision == NEW:
            await client.error("subscriptions/listen", notifications={"resourceSubscriptions": ["test://a"]})
        assert servers.asked == []


async def test_a_narrowed_url_has_nothing_of_others(stocked: House, revision: str) -> None:
    async with calling(with_doors(stocked, upstreams=Servers()), revision, path="/mcp?tag=none") as client:
        assert (await client.result("resources/list"))["resources"] == []
        assert (await client.result("prompts/list"))["prompts"] == []


async def test_a_change_of_a_resource_that_a_server_tells_of_is_told_on(stocked: House) -> None:
    servers = Servers()
    async with opened(with_doors(stocked, upstreams=servers), OLD) as client:
        await client.caller.result("resources/subscribe", uri="test://a")
        assert servers.asked == [("one", "resources/subscribe", {"uri": "test://a"})]
        standing = await client.resume(None)
        await standing.primed()
        (listener,) = servers.listeners
        assert isinstance(getattr(listener, "__self__", None), Changes)
        listener("notifications/resources/updated", {"uri": "test://other"})
        listener("notifications/resources/updated", {"uri": "test://a"})
        assert await standing.next() == {"method": "notifications/resources/updated", "params": {"uri": "test://a"}}


async def test_a_subscription_goes_on_at_another_front_door_and_ends_with_the_last(stocked: House) -> None:
    here, there = Servers(), Servers()
    subscribed, unsubscribed = (("one", f"resources/{how}", {"uri": "test://a"}) for how in ("subscribe", "unsubscribe"))
    async with opened(with_doors(stocked, upstreams=here), OLD) as client:
        second = await Caller(client.caller.http, OLD).open()
        for caller in (client.caller, second):
            await caller.result("resources/subscribe", uri="test://a")
        await client.caller.result("resources/unsubscribe", uri="test://a")
        assert here.asked == [subscribed]
        async with opened(with_doors(stocked, upstreams=there), OLD, session_id=second.session_id) as again:
            await (await again.resume(None)).primed()
            async with asyncio.timeout(60):
                while there.asked != [subscribed]:  # noqa: ASYNC110 - the fake servers tell nobody
                    await asyncio.sleep(0.01)
            await again.caller.result("resources/unsubscribe", uri="test://a")
            assert there.asked == [subscribed, unsubscribed]
        await second.result("resources/subscribe", uri="test://a")
        await second.http.delete(second.path, headers=second.headers)
        async with asyncio.timeout(60):
            while here.asked != [subscribed, unsubscribed]:  # noqa: ASYNC110 - the session is closed before
                await asyncio.sleep(0.01)


async def test_a_resource_is_left_when_the_session_that_had_it_has_expired(database: Database) -> None:
    servers, table = Servers(), McpSessionTable(database)
    watching = Watching(Passing(servers), table)
    kept, expired = (
        McpSession(session_id=uri, protocol_version=OLD, client={}, opened_at=at, subscriptions=(uri,))
        for uri, at in (("test://a", datetime.now(UTC)), ("test://row/1", datetime(2026, 1, 1, tzinfo=UTC)))
    )
    for session in (kept, expired):
        await table.open(session)
        await watching.watch_all(session)
    assert await table.expire(timedelta(days=1)) == 1
    async with watching.looked_after(0.01), asyncio.timeout(60):
        while len(servers.asked) < 3:  # noqa: ASYNC110 - the fake servers tell nobody
            await asyncio.sleep(0.01)
    assert servers.asked[2:] == [("two", "resources/unsubscribe", {"uri": "test://row/1"})]


async def test_the_server_of_a_resource_is_told_when_a_client_of_the_newer_revision_listens_no_more(stocked: House) -> None:
    servers = Servers()
    async with opened(with_doors(stocked, upstreams=servers), NEW) as client:
        stream = await client.stream("subscriptions/listen", notifications={"resourceSubscriptions": ["test://a"]})
        await stream.next()
        await stream.leave()
        async with asyncio.timeout(60):
            while len(servers.asked) < 2:  # noqa: ASYNC110 - the fake servers tell nobody
                await asyncio.sleep(0.01)
    assert [method for _, method, _ in servers.asked] == ["resources/subscribe", "resources/unsubscribe"]


async def test_another_front_door_cancels_a_request(stocked: House) -> None:
    stocked.client.script = lambda _call, _call_id: None
    async with opened(stocked.dependencies, OLD) as client:
        stream = await client.stream("tools/call", name="echo", arguments={})
        await stream.primed()
        (call_id,) = await client.calls(stocked, 1)
        async with opened(stocked.dependencies, OLD, session_id=client.session_id) as other:
            await other.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": stream.request_id}})
        result = await stocked.client.result(call_id)
        assert result.error is not None
        assert result.error.type.value == "cancelled"
        assert (await stream.next())["result"]["isError"] is True
