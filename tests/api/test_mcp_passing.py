"""What registered servers have besides tools, through the MCP server."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import JsonValue

from api.mcp.changes import Changes
from engine.calling.upstreams import Listed
from tests.api.conftest import House, with_doors
from tests.api.mcp_client import NEW, OLD, calling
from tests.api.mcp_streams import opened
from toolagent.contracts.call_messages import Listener
from toolagent.contracts.manifest import ToolGroup

LISTED: dict[str, list[Listed]] = {
    "prompts": [Listed("one", {"name": "pair"}), Listed("one", {"name": "plain"}), Listed("two", {"name": "plain"})],
    "resources": [Listed("one", {"uri": "test://a", "name": "a"})],
    "resourceTemplates": [Listed("two", {"uriTemplate": "test://row/{id}", "name": "row"})],
}


@dataclass
class Servers:
    """Two that list this, and repeat what they are asked."""

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
