"""Invalid MCP messages, and excessive ones."""

import json

import httpx
import pytest
from pydantic import JsonValue

from tests.api.conftest import House, with_doors
from tests.api.mcp_client import JSON_RPC, META, NEW, OLD, calling, door

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


def code_of(answer: httpx.Response) -> int:
    return answer.json()["error"]["code"]


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', 400, -32700),
        (b"[" * 5000, 400, -32700),
        (b"[]", 400, -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
        (b'"ping"', 400, -32600),
        (b'{"id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
    ],
)
async def test_broken_json_rpc_has_its_error(stocked: House, revision: str, body: bytes, status: int, code: int) -> None:
    async with door(stocked.dependencies) as http:
        answer = await http.post("/mcp", content=body, headers={**JSON_RPC, "MCP-Protocol-Version": revision})
    assert (answer.status_code, code_of(answer), answer.json()["id"]) == (status, code, None)


@pytest.mark.parametrize("request_id", [None, 1.5, True])
async def test_a_request_whose_id_is_none_is_no_notification(stocked: House, request_id: JsonValue) -> None:
    async with calling(stocked.dependencies, OLD) as client:
        answer = await client.post({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
    assert (answer.status_code, code_of(answer)) == (400, -32600)


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_an_unknown_method_is_said_to_be_one(stocked: House, revision: str) -> None:
    async with calling(stocked.dependencies, revision) as client:
        for method in ("nothing/here", *(["tasks/list"] if revision == NEW else [])):
            assert (await client.error(method))["code"] == -32601


@pytest.mark.parametrize("token", ["x" * 199, 10**200, ["x"], True, 1.5])
async def test_a_progress_token_is_a_short_text_or_an_integer(stocked: House, token: JsonValue) -> None:
    async with calling(stocked.dependencies, NEW) as client:
        asked: dict[str, dict[str, JsonValue]] = {"tools/call": {"name": "echo"}, "resources/read": {"uri": "toolagent://tools/echo"}}
        for method, params in asked.items():
            error = await client.error(method, **params, _meta={"progressToken": token})
            assert (error["code"], "progressToken" in error["message"]) == (-32602, True)
        assert stocked.client.calls == {}


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("params", [{"name": 7, "arguments": {}}, {"arguments": {}}, {"name": "echo", "arguments": [1]}])
async def test_params_of_the_wrong_form_are_refused(stocked: House, revision: str, params: dict[str, object]) -> None:
    async with calling(stocked.dependencies, revision) as client:
        message, headers = client.request("tools/call", **params)
        answer = await client.post(message, {**headers, "Mcp-Name": "echo"})
        # The newer revision compares the headers with the body first.
        assert code_of(answer) in {-32602, -32020}
        assert stocked.client.calls == {}


async def test_without_a_session_only_a_session_is_begun(stocked: House) -> None:
    async with door(stocked.dependencies) as http:
        for method, status in (("POST", 400), ("GET", 400), ("DELETE", 400), ("PUT", 405)):
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            answer = await http.request(method, "/mcp", content=body, headers=JSON_RPC)
            assert answer.status_code == status


async def test_an_unknown_revision_is_told_which_ones_there_are(stocked: House) -> None:
    async with door(stocked.dependencies) as http:
        meta: JsonValue = {f"{META}/protocolVersion": "1999-01-01", f"{META}/clientCapabilities": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
        headers = {**JSON_RPC, "MCP-Protocol-Version": "1999-01-01", "Mcp-Method": "tools/list"}
        answer = await http.post("/mcp", content=body, headers=headers)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["data"]["supported"]) == (400, -32022, [NEW])
        assert [one for one in (NEW, OLD, "2025-06-18", "2025-03-26", "2024-11-05") if one not in error["message"]] == []
        old = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "1999-01-01"}}  # type: ignore[dict-item]
        answer = await http.post("/mcp", content=json.dumps(old), headers=JSON_RPC)
        assert answer.json()["result"]["protocolVersion"] == OLD


async def test_a_body_of_the_newer_revision_under_a_header_of_an_older_one_is_refused(stocked: House) -> None:
    async with calling(stocked.dependencies, NEW) as client:
        message, headers = client.request("tools/list")
        answer = await client.post(message, {**headers, "MCP-Protocol-Version": OLD})
    assert (answer.status_code, code_of(answer), answer.json()["id"]) == (400, -32020, message["id"])


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("tools/call", {"name": "echo", "arguments": [1]}, "params.arguments: "),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "x"}, "argument": {"name": "a"}}, "params.argument.value: "),
        ("tools/list", {"cursor": 5}, "params.cursor: "),
    ],
)
async def test_the_error_of_params_names_the_field(
    stocked: House, revision: str, method: str, params: dict[str, JsonValue], field: str
) -> None:
    async with calling(stocked.dependencies, revision) as client:
        error = await client.error(method, **params)
    assert (error["code"], error["message"][: len(field)]) == (-32602, field)


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_body_that_is_too_large_is_refused(stocked: House, revision: str) -> None:
    async with calling(stocked.dependencies, revision) as client:
        message, headers = client.request("tools/call", name="echo", arguments={"message": "x" * 10_000_000})
        answer = await client.post(message, headers)
        assert (answer.status_code, answer.json()["type"]) == (413, "body_too_large")


async def test_a_foreign_origin_and_a_foreign_host_are_refused(stocked: House) -> None:
    async with door(stocked.dependencies) as http:
        for header, value, status in (("Origin", "https://evil.example", 403), ("Host", "evil.example", 421)):
            answer = await http.post("/mcp", content=json.dumps(INITIALIZE), headers={**JSON_RPC, header: value})
            assert (answer.status_code, "mcp-session-id" in answer.headers) == (status, False)


@pytest.mark.parametrize(("header", "value", "status"), [("Content-Type", "text/plain", 415), ("Accept", "text/html", 406)])
async def test_another_form_is_not_taken(stocked: House, header: str, value: str, status: int) -> None:
    async with door(stocked.dependencies) as http:
        answer = await http.post("/mcp", content=json.dumps(INITIALIZE), headers={**JSON_RPC, header: value})
        assert answer.status_code == status


async def test_a_client_that_says_too_much_of_itself_gets_no_session(stocked: House) -> None:
    said = {**INITIALIZE["params"], "capabilities": {"experimental": {"x": {"y": "z" * 70_000}}}}  # type: ignore[dict-item]
    async with door(with_doors(stocked, limits=stocked.dependencies.limits)) as http:
        answer = await http.post("/mcp", content=json.dumps({**INITIALIZE, "params": said}), headers=JSON_RPC)
        assert answer.status_code == 400


async def test_a_state_that_nobody_sealed_is_refused(stocked: House) -> None:
    async with calling(stocked.dependencies, NEW) as client:
        error = await client.error("tools/call", name="echo", arguments={}, requestState="v1.AAAA", inputResponses={})
        assert (error["code"], error["data"], stocked.client.calls) == (-32602, {"reason": "invalid_request_state"}, {})


async def test_an_event_id_of_nobody_opens_the_standing_stream_of_no_other_session(stocked: House) -> None:
    async with door(stocked.dependencies) as http:
        answer = await http.get("/mcp", headers={**JSON_RPC, "Last-Event-ID": "x" * 5000, "Mcp-Session-Id": "0" * 32})
        assert answer.status_code == 404
