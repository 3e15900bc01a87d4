"""The MCP server: behaviour common to both revisions."""

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue

from api.mcp.calls import answers as answering
from api.views.tools import formatted_tools
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from tests.api.conftest import ECHO, House, with_doors
from tests.api.mcp_client import NEW, OLD, Caller, calling, door
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.formats import ToolFormat
from toolagent.contracts.manifest import ToolGroup, ToolManifest
from toolagent.contracts.references import ResultReference
from toolagent.contracts.sources import BuiltinSource, McpSource
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import failed, succeeded

SOURCE = BuiltinSource(handler="echo")


@pytest_asyncio.fixture(params=[OLD, NEW])
async def client(stocked: House, request: pytest.FixtureRequest) -> AsyncGenerator[Caller]:
    async with calling(stocked.dependencies, request.param) as caller:
        yield caller


def answers(house: House, result: JsonValue) -> None:
    """Every call succeeds with this value."""
    house.client.script = lambda call, call_id: succeeded(call_id, call.tool_id, result, datetime.now(UTC), execution_time=0.0, metadata={})


async def test_every_active_tool_is_listed_with_its_id(stocked: House, client: Caller) -> None:
    await stocked.registry.register(ECHO.model_copy(update={"tool_id": "examples:loud-echo"}), (SOURCE,))
    tools = (await client.result("tools/list"))["tools"]
    assert {tool["name"]: tool["_meta"]["toolagent/tool_id"] for tool in tools} == {
        "echo": "echo",
        "examples__loud-echo": "examples:loud-echo",
        "image_compress_api": "image_compress_api",
        "weather": "weather",
    }
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)


async def test_pages_have_a_hundred_tools_and_no_tool_twice(stocked: House, client: Caller) -> None:
    for number in range(150):
        await stocked.registry.register(ToolManifest(tool_id=f"many_{number}", name="Many"), (SOURCE,))
    first = await client.result("tools/list")
    second = await client.result("tools/list", cursor=first["nextCursor"])
    names = [tool["name"] for tool in (*first["tools"], *second["tools"])]
    assert (len(first["tools"]), len(names), len(set(names)), second.get("nextCursor")) == (100, 153, 153, None)


@pytest.mark.parametrize("cursor", ["ZWNobw", "////", "é"])
async def test_a_cursor_of_nobody_is_refused(client: Caller, cursor: str) -> None:
    error = await client.error("tools/list", cursor=cursor)
    assert (error["code"], error["message"].partition(":")[0]) == (-32602, "cursor")


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("tag=图片", {"image_compress_api"}),
        ("namespace=own", {"own__one"}),
        ("group=pair", {"echo", "weather"}),
        ("group=none", set[str]()),
        ("tag=图片&group=pair", set[str]()),
    ],
)
@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_the_url_narrows_what_is_listed_and_called(stocked: House, revision: str, query: str, listed: set[str]) -> None:
    await stocked.registry.register(ToolManifest(tool_id="own:one", name="One"), (SOURCE,))
    await stocked.groups.replace([ToolGroup(group_id="pair", name="Pair", tool_ids=("echo", "weather"))])
    async with calling(stocked.dependencies, revision, path=f"/mcp?{query}") as client:
        assert {tool["name"] for tool in (await client.result("tools/list"))["tools"]} == listed
        if "echo" not in listed:
            assert (await client.error("tools/call", name="echo", arguments={}))["code"] == -32602


async def test_a_call_has_its_result_as_text_and_as_structure_and_its_id(stocked: House, client: Caller) -> None:
    answers(stocked, {"said": "hi", "times": 2})
    result = await client.result("tools/call", name="echo", arguments={"message": "hi"})
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"] == {"said": "hi", "times": 2}
    assert result["isError"] is False
    call_id = result["_meta"]["toolagent/call_id"]
    assert stocked.client.calls[call_id].params == {"message": "hi"}


async def test_the_conversation_of_a_call_is_its_session(stocked: House, client: Caller) -> None:
    await client.result("tools/call", name="echo", arguments={})
    (call,) = stocked.client.calls.values()
    assert (call.caller.caller_id, call.caller.conversation_id) == ("tests", client.session_id)


async def test_the_same_key_is_the_same_call(stocked: House, client: Caller) -> None:
    for _ in range(2):
        await client.result("tools/call", name="echo", arguments={}, _meta={"toolagent/idempotency_key": "one"})
    assert len(stocked.client.calls) == 1


async def test_a_key_is_its_sessions_own_at_every_front_door(stocked: House) -> None:
    key = {"toolagent/idempotency_key": "one"}
    async with calling(stocked.dependencies, OLD) as client:
        for arguments in ({"message": "mine"}, {"message": "theirs"}):
            client = await Caller(client.http, OLD).open()
            told = await client.result("tools/call", name="echo", arguments=arguments, _meta=key)
            assert told["structuredContent"] == arguments
    async with door(stocked.dependencies) as http:
        again = Caller(http, OLD, session_id=client.session_id)
        assert (await again.result("tools/call", name="echo", arguments=arguments, _meta=key))["_meta"] == told["_meta"]
    assert [call.caller.caller_id for call in stocked.client.calls.values()] == ["tests", "tests"]


async def test_who_says_who_calls_has_the_key_in_all_sessions_and_without(stocked: House) -> None:
    meta = {"toolagent/idempotency_key": "one", "toolagent/caller_id": "ada"}
    for revision in (OLD, OLD, NEW):
        async with calling(stocked.dependencies, revision) as client:
            await client.result("tools/call", name="echo", arguments={}, _meta=meta)
            await client.result("tools/call", name="echo", arguments={}, _meta={**meta, "toolagent/caller_id": "bob"})
    assert [*stocked.client.calls] == [call_id_for_key(caller, "one") for caller in ("ada", "bob")]
    assert [call.caller.caller_id for call in stocked.client.calls.values()] == ["ada", "bob"]


@pytest.mark.parametrize("caller", ["", "x" * 201, 7, "a\0"])
async def test_a_caller_id_of_the_wrong_form_is_refused(stocked: House, client: Caller, caller: object) -> None:
    error = await client.error("tools/call", name="echo", arguments={}, _meta={"toolagent/caller_id": caller})
    assert (error["code"], "toolagent/caller_id" in error["message"], stocked.client.calls) == (-32602, True, {})


async def test_another_call_under_a_key_in_use_is_refused(stocked: House, client: Caller) -> None:
    stocked.client.script = lambda _call, _call_id: None
    key = {"toolagent/idempotency_key": "one"}
    first = asyncio.create_task(client.result("tools/call", name="echo", arguments={}, _meta=key))
    async with asyncio.timeout(60):
        while not stocked.client.calls:  # noqa: ASYNC110 - the fake client tells nobody
            await asyncio.sleep(0)
    other = await client.result("tools/call", name="weather", arguments={}, _meta=key)
    assert (other["isError"], other["_meta"]["toolagent/error"]["details"]["reason"]) == (True, "idempotency_conflict")
    (call_id,) = stocked.client.calls
    stocked.client.finish(call_id, succeeded(call_id, "echo", {"n": 1}, datetime.now(UTC), execution_time=0.0, metadata={}))
    assert (await first)["structuredContent"] == {"n": 1}


@pytest.mark.parametrize("key", ["", "x" * 256, 7])
async def test_a_key_of_the_wrong_form_is_refused(stocked: House, client: Caller, key: object) -> None:
    error = await client.error("tools/call", name="echo", arguments={}, _meta={"toolagent/idempotency_key": key})
    assert (error["code"], stocked.client.calls) == (-32602, {})


async def test_an_error_of_a_call_is_one_of_the_tool_with_ours_in_it(stocked: House, client: Caller) -> None:
    error = ToolError(type=ErrorType.EXECUTION_ERROR, message="It broke.", details={"outcome": "executed", "output": {"a": 1}})

    def breaks(call: ToolCall, call_id: str) -> ToolResult:
        return failed(call_id, call.tool_id, error, datetime.now(UTC))

    stocked.client.script = breaks
    result = await client.result("tools/call", name="echo", arguments={})
    assert (result["isError"], result["_meta"]["toolagent/error"]) == (True, error.model_dump(mode="json"))
    assert "structuredContent" not in result  # clients hold it against the output schema
    assert result["content"][0]["text"] == 'execution_error: It broke.\noutput: {"a": 1}'


async def test_a_tool_that_is_not_there_is_refused(client: Caller) -> None:
    assert (await client.error("tools/call", name="nothing", arguments={}))["code"] == -32602


async def test_a_small_picture_is_in_the_answer_and_other_files_are_links(stocked: House, client: Caller) -> None:
    async def once(data: bytes) -> AsyncGenerator[bytes]:
        yield data

    picture = await stocked.files.put(once(b"\x89PNG"), "a.png", "image/png")
    table = await stocked.files.put(once(b"a,b"), "a.csv", "text/csv")
    files = {"picture": {"type": "string", "format": "file-path"}, "table": {"type": "string", "format": "file-path"}}
    schema = {"type": "object", "properties": files}
    await stocked.registry.register(ECHO.model_copy(update={"tool_id": "draw", "output_schema": schema}), (SOURCE,))
    answers(stocked, {"picture": picture.file_id, "table": table.file_id})
    content = (await client.result("tools/call", name="draw", arguments={}))["content"]
    assert content[1] == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    link = {"type": "resource_link", "uri": f"toolagent://files/{table.file_id}", "name": "a.csv", "mimeType": "text/csv", "size": 3}
    assert content[2] == link
    read = await client.result("resources/read", uri=link["uri"])
    assert read["contents"] == [{"uri": link["uri"], "mimeType": "text/csv", "text": "a,b"}]


async def test_a_file_that_is_too_large_for_a_resource_is_refused_with_another_way(
    stocked: House, client: Caller, database: Database, tmp_path: Path
) -> None:
    async def once() -> AsyncGenerator[bytes]:
        for _ in range(4):
            yield bytes(2**20)
        yield b"."

    folder = tmp_path / "files"
    file = await FileStore(database, FolderContent(folder), folder, 2**23).put(once(), "a.bin")
    error = await client.error("resources/read", uri=f"toolagent://files/{file.file_id}")
    assert (error["code"], f"GET /files/{file.file_id}" in error["message"]) == (-32602, True)
    assert (await stocked.http.get(f"/files/{file.file_id}")).headers["content-length"] == str(2**22 + 1)


async def test_tools_are_resources(client: Caller) -> None:
    listed = await client.result("resources/list")
    assert "toolagent://tools/weather" in {resource["uri"] for resource in listed["resources"]}
    (content,) = (await client.result("resources/read", uri="toolagent://tools/weather"))["contents"]
    assert json.loads(content["text"])["description"] == "Tells the weather"
    templates = (await client.result("resources/templates/list"))["resourceTemplates"]
    assert {one["uriTemplate"] for one in templates} == {"toolagent://files/{file_id}", "toolagent://tools/{tool_id}"}


@pytest.mark.parametrize(
    "uri", ["toolagent://tools/none", "toolagent://files/none", "toolagent://files/file_" + "0" * 32, "file:///etc/passwd"]
)
async def test_a_resource_that_is_not_there_is_refused(client: Caller, uri: str) -> None:
    assert (await client.error("resources/read", uri=uri))["code"] == (-32002 if client.revision == OLD else -32602)


async def test_ids_of_tools_complete(client: Caller) -> None:
    ref = {"type": "ref/resource", "uri": "toolagent://tools/{tool_id}"}
    result = await client.result("completion/complete", ref=ref, argument={"name": "tool_id", "value": "w"})
    assert result["completion"]["values"] == ["weather"]


async def test_a_group_is_a_prompt_with_its_order(stocked: House, client: Caller) -> None:
    order = ("weather", "echo")
    group = ToolGroup(group_id="pair", name="Pair", tool_ids=order, usage_order=order, usage_example="Like this.")
    await stocked.groups.replace([group])
    assert [prompt["name"] for prompt in (await client.result("prompts/list"))["prompts"]] == ["pair"]
    (message,) = (await client.result("prompts/get", name="pair", arguments={"goal": "Sun"}))["messages"]
    assert message["content"]["text"].splitlines()[1:] == ["The goal: Sun", "1. weather", "2. echo", "Like this."]
    assert (await client.error("prompts/get", name="none"))["code"] == -32602


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_the_search_mode_finds_describes_and_calls(stocked: House, revision: str) -> None:
    async with calling(stocked.dependencies, revision, path="/mcp?mode=search") as client:
        assert [tool["name"] for tool in (await client.result("tools/list"))["tools"]] == ["find_tools", "describe_tool", "call_tool"]
        found = await client.result("tools/call", name="find_tools", arguments={"need": "weather"})
        assert found["structuredContent"]["tools"][0]["name"] == "weather"
        described = await client.result("tools/call", name="describe_tool", arguments={"name": "weather"})
        assert described["structuredContent"]["_meta"] == {"toolagent/tool_id": "weather"}
        called = await client.result("tools/call", name="call_tool", arguments={"name": "echo", "arguments": {"message": "x"}})
        assert called["structuredContent"] == {"message": "x"}
        for name, arguments in (
            ("find_tools", {}),
            ("find_tools", {"need": "a " * 251}),
            ("describe_tool", {"name": "no"}),
            ("call_tool", {"name": 1}),
            ("echo", {}),
        ):
            assert (await client.error("tools/call", name=name, arguments=arguments))["code"] == -32602
        unnamed = await client.error("tools/call", name="call_tool", arguments={"tool_id": "echo"})
        assert unnamed["message"] == "arguments.name: the name of a tool is expected. find_tools has the names."


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize(
    ("declared", "elicits"),
    [({}, ("form",)), ({"form": {}}, ("form",)), ({"url": {}}, ("url",)), ({"form": {}, "url": {}}, ("form", "url"))],
)
async def test_a_call_knows_the_modes_of_elicitation_that_its_client_takes(
    stocked: House, revision: str, declared: dict[str, JsonValue], elicits: tuple[str, ...]
) -> None:
    asks = ECHO.model_copy(update={"tool_id": "asks", "output_schema": {}})
    await stocked.registry.register(asks, (McpSource(url="http://127.0.0.1:1/mcp", tool_name="asks"),))
    async with calling(stocked.dependencies, revision, {"elicitation": declared}) as client:
        await client.result("tools/call", name="asks", arguments={})
    assert [call.listens and call.listens.elicits for call in stocked.client.calls.values()] == [elicits]


async def test_the_search_mode_begins_tasks_of_what_it_has(stocked: House) -> None:
    async with calling(stocked.dependencies, OLD, path="/mcp?mode=search") as client:
        wanted: dict[str, JsonValue] = {"name": "echo", "arguments": {"message": "x"}}
        begun = await client.result("tools/call", name="call_tool", arguments=wanted, task={})
        assert [*stocked.client.calls] == [begun["task"]["taskId"]]
        for name, code in (("echo", -32602), ("find_tools", -32601)):
            assert (await client.error("tools/call", name=name, arguments={"need": "x"}, task={}))["code"] == code
        wrong: dict[str, JsonValue] = {"name": "echo", "arguments": 0}
        assert (await client.error("tools/call", name="call_tool", arguments=wrong))["code"] == -32602
        assert (await client.error("tools/call", name="call_tool", arguments=wrong, task={}))["code"] == -32602
        assert len(stocked.client.calls) == 1


@pytest.mark.parametrize("is_small", [True, False])
async def test_a_large_result_stands_in_the_answer_where_its_tool_lists_an_output_schema(
    stocked: House, client: Caller, *, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_small:
        monkeypatch.setattr(answering, "STRUCTURED_BYTES", 10)
    schema: JsonValue = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    await stocked.registry.register(ECHO.model_copy(update={"tool_id": "large", "output_schema": schema}), (SOURCE,))
    output = {"text": "x" * 100}

    async def pieces() -> AsyncGenerator[bytes]:
        yield json.dumps(output).encode()

    file = await stocked.files.put(pieces(), "large.json", "application/json")
    told = ResultReference(
        file=f"/files/{file.file_id}",
        file_id=file.file_id,
        media_type=file.media_type,
        size=file.size,
        sha256=file.sha256,
        preview="{",
    )
    stocked.client.script = lambda _, call_id: ToolResult(
        status="success", result=told.model_dump(mode="json"), is_reference=True, call_id=call_id
    )
    result = await client.result("tools/call", name="large", arguments={})
    assert (result["isError"], result.get("structuredContent")) == ((False, output) if is_small else (True, None))
    assert [block["type"] for block in result["content"]][-1] == "resource_link"


async def test_with_a_key_the_mcp_server_needs_it_too(stocked: House) -> None:
    async with calling(with_doors(stocked, api_key="secret"), NEW) as client:
        message, headers = client.request("tools/list")
        assert (await client.post(message, headers)).status_code == 401
        assert (await client.post(message, {**headers, "Authorization": "Bearer secret"})).status_code == 200


async def test_the_name_of_a_tool_reaches_no_other(stocked: House, client: Caller) -> None:
    for tool_id in ("pair:of", "pair__of"):
        await stocked.registry.register(ECHO.model_copy(update={"tool_id": tool_id}), (SOURCE,))
    assert (await client.error("tools/call", name="pair__of", arguments={}))["code"] == -32602
    await client.result("tools/call", name="pair:of", arguments={})
    assert [call.tool_id for call in stocked.client.calls.values()] == ["pair:of"]


async def test_names_are_those_of_the_formats_also_when_a_tool_is_switched_off(stocked: House, client: Caller) -> None:
    for tool_id in ("pair:of", "pair__of"):
        await stocked.registry.register(ECHO.model_copy(update={"tool_id": tool_id}), (SOURCE,))
    await stocked.registry.deactivate("pair:of", ECHO.version)
    listed = (await client.result("tools/list"))["tools"]
    names = {tool["name"]: tool["_meta"]["toolagent/tool_id"] for tool in listed}
    assert names == (await formatted_tools(stocked.dependencies, ToolFormat.MCP)).names
    assert "pair__of" not in names
