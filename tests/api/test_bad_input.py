"""Invalid requests get clear refusals, and never an error of the service."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

import httpx
import pytest
from fastapi import FastAPI, Query
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, JsonValue

from api.errors import Refusal, handle_errors
from api.ports import Limits
from api.reading.strict_json import parse_json
from api.security import BODY_SLACK, DRAINED
from tests.api.conftest import BASE_URL, LIMITS, House, browse, with_doors

JSON = {"Content-Type": "application/json"}
MAX_BODY = LIMITS.max_params_bytes + BODY_SLACK


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b'{"tool_id": "echo",}',
        b'{"tool_id": "echo"} x',
        b'{"tool_id":"echo","params":{"a":NaN}}',
        b'{"tool_id":"echo","params":{"a":Infinity}}',
        b'{"tool_id":"echo","params":{"a":-Infinity}}',
        b'{"tool_id":"echo","params":{"a":1e999}}',
        b'{"tool_id":"echo","params":{"a":-1e999}}',
        b'{"tool_id":"echo","params":{"a":"\\ud800"}}',
        b'{"tool_id":"echo","params":{"\\udc00":1}}',
        b'{"tool_id":"echo","params":{"a":' + b"[" * 30_000 + b"]" * 30_000 + b"}}",
        b'{"a":' * 10_000,
        b'{"tool_id":"echo","params":{"a":1' + b"0" * 5000 + b"}}",
        b'{"tool_id":"echo","params":{"a":1,"a":2}}',
        b'{"tool_id":"echo","tool_id":"weather"}',
        b'{"tool_id":"\xff"}',
        b'{"tool_id":"a\x00b"}',
        b"\xef\xbb\xbf{}",
        '{"tool_id":"echo"}'.encode("utf-16"),
    ],
)
@pytest.mark.parametrize("path", ["/run_tool", "/select_tool", "/search_tools"])
async def test_what_is_not_json_is_a_400(house: House, content: bytes, path: str) -> None:
    answer = await house.http.post(path, content=content, headers=JSON)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json()["type"] == "malformed_json"
    assert house.client.calls == {}


async def test_line_and_column_are_named(house: House) -> None:
    answer = await house.http.post("/run_tool", content=b'{"tool_id":\n "echo",}', headers=JSON)
    assert answer.json()["errors"] == [{"field": "body", "message": "trailing comma at line 2 column 9"}]


@pytest.mark.parametrize("content", [b"[]", b"null", b"3", b'"echo"', b"", b"true"])
@pytest.mark.parametrize("path", ["/run_tool", "/select_tool", "/search_tools"])
async def test_what_is_no_object_is_a_422(house: House, content: bytes, path: str) -> None:
    answer = await house.http.post(path, content=content, headers=JSON)
    assert (answer.status_code, [error["field"] for error in answer.json()["errors"]]) == (422, ["body"])


@pytest.mark.parametrize("url", ["ftp://example.com/", "example.com", "https://a b", "http://", "https://x/" + "x" * 2048])
@pytest.mark.parametrize(("path", "asked"), [("/run_tool", {"tool_id": "echo"}), ("/run_tools", {"calls": [{"tool_id": "echo"}]})])
async def test_a_callback_that_is_no_address_is_told_what_it_must_be(
    stocked: House, url: str, path: str, asked: dict[str, JsonValue]
) -> None:
    answer = await stocked.http.post(path, json={**asked, "mode": "async", "callback_url": url})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "callback_url")
    assert error["message"].startswith("It must begin with http:// or https://")


async def test_a_callback_that_would_never_be_posted_is_refused(stocked: House) -> None:
    answer = await stocked.http.post("/run_tool", json={"tool_id": "echo", "mode": "async", "callback_url": "http://10.0.0.1/"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "callback_url")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json", "é", "a/b/c"]
)
async def test_another_content_type_is_a_415(house: House, kind: str) -> None:
    headers = {b"Content-Type": kind.encode("latin-1")}
    answer = await house.http.post("/run_tool", content=b'{"tool_id":"echo"}', headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (415, "unsupported_media_type")


async def test_no_content_type_is_a_415(house: House) -> None:
    assert (await house.http.post("/run_tool", content=b'{"tool_id":"echo"}')).status_code == 415


async def test_what_json_allows_goes_through(house: House) -> None:
    params: JsonValue = {"big": 10**300, "float": 1e300, "deep": json.loads("[" * 150 + "]" * 150), "text": "😀 \u0000 é", "": None}
    answer = await house.http.post(
        "/run_tool", json={"tool_id": "echo", "params": params}, headers={"Content-Type": "Application/JSON; charset=utf-8"}
    )
    assert answer.status_code == 200
    (call,) = house.client.calls.values()
    assert call.params == params


async def test_a_body_is_bounded(house: House) -> None:
    content = b'{"tool_id":"echo","params":{"a":"' + b"x" * MAX_BODY + b'"}}'
    answer = await house.http.post("/run_tool", content=content, headers=JSON)
    assert (answer.status_code, answer.json()["type"]) == (413, "body_too_large")


@pytest.mark.parametrize("path", ["/create_tool", "/tools/echo/repair"])
async def test_a_task_that_is_too_large_is_not_told_of_calls(house: House, path: str) -> None:
    answer = await house.http.post(path, content=b'{"description":"' + b"x" * MAX_BODY + b'"}', headers=JSON)
    assert (answer.status_code, "examples" in answer.json()["detail"]) == (413, True)


async def test_a_chunked_body_is_bounded_while_it_is_read(house: House) -> None:
    read = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1000):
            read += 100_000
            yield b" " * 100_000

    answer = await house.http.post("/run_tool", content=chunks(), headers=JSON)
    assert (answer.status_code, answer.json()["type"]) == (413, "body_too_large")
    assert read <= 3 * MAX_BODY + DRAINED + 200_000


async def test_params_over_the_limit_in_a_body_under_it_are_for_admission_to_refuse(house: House) -> None:
    answer = await house.http.post("/run_tool", json={"tool_id": "echo", "params": {"a": "x" * (LIMITS.max_params_bytes + 1)}})
    assert answer.status_code == 200  # the fake admits everything


async def test_a_call_that_grows_when_written_out_is_bounded(house: House) -> None:
    numbers = b",".join([b"1e15"] * (MAX_BODY // 8))
    for path in ("/run_tool", "/select_tool"):
        answer = await house.http.post(path, content=b'{"tool_id":"echo","params":{"a":[' + numbers + b"]}}", headers=JSON)
        assert (answer.status_code, answer.json()["type"]) == (413, "body_too_large")


async def test_many_errors_are_listed_up_to_a_bound(house: House) -> None:
    answer = await house.http.post("/run_tool", json={"tool_id": "echo"} | {f"field{number}": 1 for number in range(2000)})
    assert (answer.status_code, len(answer.json()["errors"])) == (422, 50)


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/tools/", "/run_tool/", "/tools/a/b", "/files", "/tasks/", "//tools", "/%00", "/tools/a/start/now"]
)
async def test_an_unknown_path_is_a_problem(house: House, path: str) -> None:
    answer = await house.http.get(path)
    expected = (405, "method_not_allowed") if path == "/files" else (404, "route_not_found")
    assert (answer.status_code, answer.json()["type"]) == expected
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_wrong_method_is_a_problem_that_names_the_right_one(house: House) -> None:
    answer = await house.http.get("/run_tool")
    assert (answer.status_code, answer.json()["type"], answer.headers["allow"]) == (405, "method_not_allowed", "POST")
    assert answer.json()["detail"] == "This path takes POST, not GET."
    assert (await house.http.request("BREW", "/health")).status_code == 405
    assert (await house.http.patch("/tools/echo")).headers["allow"] == "DELETE, GET"


@pytest.mark.parametrize("name", ["Idempotency-Key", "X-Call-Id"])
async def test_a_header_that_says_two_things_is_a_problem_and_nothing_runs(stocked: House, name: str) -> None:
    once, twice = [(name, "call-00000001")], [(name, "call-00000001"), (name, "call-00000002")]
    answer = await stocked.http.post("/run_tool", json={"tool_id": "echo"}, headers=twice)
    assert (answer.status_code, answer.json()["type"], answer.json()["errors"][0]["field"]) == (400, "conflicting_headers", name)
    assert (await stocked.http.post("/run_tool", json={"tool_id": "echo"}, headers=once * 2)).status_code in {200, 422}
    assert len(stocked.client.calls) <= 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
FIELDS = st.sampled_from(
    ["tool_id", "params", "version", "mode", "timeout_s", "idempotency_key", "caller", "stream", "priority", "keyword", "category", "x"]
)
BODIES = (
    st.binary(max_size=200)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(FIELDS, VALUES | st.sampled_from(["echo", "weather", "sync", "async"])).map(lambda value: json.dumps(value).encode())
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=BODIES, path=st.sampled_from(["/run_tool", "/select_tool", "/search_tools", "/files", "/tools/echo/start"]))
@pytest.mark.promise("answers-are-results")
async def test_no_body_makes_the_service_fail(house: House, content: bytes, path: str) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b" if path == "/files" else "application/json"}
    answer = await house.http.post(path, content=content, headers=headers)
    assert answer.status_code < 500, (content, answer.text)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    segment=st.text(min_size=1, max_size=40).map(lambda text: "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "replace"))),
    where=st.sampled_from(
        ["GET /tools/{}", "POST /tools/{}/stop", "DELETE /tools/{}", "GET /tasks/{}", "POST /tasks/{}/cancel", "GET /files/{}", "GET /{}"]
    ),
)
async def test_no_path_makes_the_service_fail(house: House, segment: str, where: str) -> None:
    method, path = where.split(" ")
    assert (await house.http.request(method, path.format(segment))).status_code in {404, 405}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["Idempotency-Key", "X-Call-Id", "Content-Length", "Content-Type", "Origin", "Authorization"]),
    value=st.binary(max_size=60),
)
async def test_no_header_makes_the_service_fail(house: House, name: str, value: bytes) -> None:
    headers = {b"Content-Type": b"application/json", name.encode(): value}
    assert (await house.http.post("/run_tool", content=b'{"tool_id":"echo"}', headers=headers)).status_code < 500


@pytest.mark.parametrize("path", ["/run_tool", "/run_tools", "/create_tool", "/agent/action", "/search_tools"])
async def test_a_body_of_more_values_than_are_taken_is_a_422_with_their_number(house: House, path: str) -> None:
    body = b'{"x":[' + b"[]," * 330_000 + b"1]}"
    async with browse(with_doors(house, limits=Limits())) as http:
        answer = await http.post(path, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["type"]) == (422, "validation_error")
    assert answer.json()["details"] == {"reason": "too_many_values", "values": 330_004, "limit": 110_000}
    assert "TOOL_AGENT_MAX_VALUES" in answer.json()["detail"]


async def test_a_body_of_a_hundred_thousand_numbers_is_taken(house: House) -> None:
    async with browse(with_doors(house, limits=Limits())) as http:
        answer = await http.post("/run_tool", json={"tool_id": "echo", "params": {"message": [*range(100_000)]}})
    assert answer.status_code == 200


def test_json_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def another_reader(_body: bytes, **_options: bool) -> JsonValue:
        raise AssertionError("It is read again.")

    monkeypatch.setattr("api.reading.strict_json.from_json", another_reader)
    assert parse_json('{"a": [1, 2.5, "é", "\\u00e9", {"b": null}]}'.encode()) == {"a": [1, 2.5, "é", "é", {"b": None}]}


@pytest.mark.parametrize(
    ("body", "found"),
    [(r'{"a": "\ud83d\ude00"}', {"a": "😀"}), (r'{"a": "\\ud83d"}', {"a": r"\ud83d"}), (r'{"a": "\uD83D\uDE00"}', {"a": "😀"})],
)
def test_whole_pairs_of_surrogates_are_read(body: str, found: JsonValue) -> None:
    assert parse_json(body.encode()) == found


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_json_is_read_as_pythons_reader_does_or_refused(value: JsonValue) -> None:
    body = json.dumps(value)
    try:
        found = parse_json(body.encode())
    except Refusal:
        assert "NaN" in body or "Infinity" in body or "\\ud" in body
    else:
        assert found == value


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: int = 1


class Said(BaseModel):
    limits: int


async def test_fields_of_the_body_are_no_hint_for_what_is_asked_in_the_address() -> None:
    app = FastAPI()
    handle_errors(app)

    async def route(asked: Annotated[Asked, Query()], said: Said) -> int:
        return asked.limit + said.limits

    app.add_api_route("/x", route, methods=["POST"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL) as http:
        answer = await http.post("/x", params={"limitz": 1}, json={"limits": 1})
    assert answer.json()["errors"] == [{"field": "limitz", "message": "There is no such field."}]


@pytest.mark.parametrize(("path", "field"), [("/run_tool", "''"), ("/create_tool", "task_spec.''")])
async def test_a_field_with_an_empty_name_is_named(stocked: House, path: str, field: str) -> None:
    answer = await stocked.http.post(
        path, json={"tool_id": "echo", "": 1} if path == "/run_tool" else {"task_spec": {"type": "build_tool", "description": "x", "": 1}}
    )
    assert field in [error["field"] for error in answer.json()["errors"]]


async def test_a_caller_over_http_cannot_listen(stocked: House) -> None:
    answer = await stocked.http.post("/run_tool", json={"tool_id": "echo", "listens": {"progress": True}})
    assert (answer.status_code, "listens" in answer.text) == (422, True)
