"""What our launcher reads of views, and what it makes of answers; without a sandbox, on the service's own Python."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from engine.making.inside.tool_agent_serving import view_reads
from engine.making.inside.tool_agent_serving.facade import DOCUMENT, HEALTH, Facade
from engine.making.python_projects.packing import with_room
from toolagent_service.contracts.plans import AsgiBuild

request: Any = None
READS: Any = view_reads


def read(view: Callable[..., Any], method: str = "POST") -> dict[tuple[str, str], tuple[JsonValue, bool]]:
    return {key: (one.schema, one.required) for key, one in READS.reads_of(view, method).items()}


def by_query() -> object:
    return request.args.get("page", 1, type=int), request.args["of"], float(request.values.get("least"))


def by_alias() -> object:
    data: Any = request.get_json() or {}
    if "more" in data:
        return data["deep"]
    return int(data["count"]), data.get("name", "x"), data.get("size", 3)


def by_method() -> object:
    if request.method == "POST":
        return request.form["title"], request.files["image"]
    return request.args["shown"]


async def awaited() -> object:
    return (await request.json())["text"], (await request.get_json())["kind"]


def hidden(name: str = "x") -> object:
    return request.args.get(name)


def test_the_query_is_read_with_its_types_and_defaults() -> None:
    assert read(by_query) == {
        ("query", "page"): ({"type": "integer", "default": 1}, False),
        ("query", "of"): ({"type": "string"}, True),
        ("query", "least"): ({"type": "number"}, False),
    }


def test_json_kept_in_a_variable_is_read_and_what_only_some_requests_need_is_optional() -> None:
    assert read(by_alias) == {
        ("json", "more"): ({}, False),
        ("json", "deep"): ({}, False),
        ("json", "count"): ({"type": "integer"}, True),
        ("json", "name"): ({"type": "string", "default": "x"}, False),
        ("json", "size"): ({}, False),
    }


def test_of_a_view_for_several_methods_that_of_the_method_is_read() -> None:
    assert read(by_method, "POST") == {
        ("form", "title"): ({"type": "string"}, True),
        ("file", "image"): ({"type": "string", "format": "binary"}, True),
    }
    assert read(by_method, "GET") == {("query", "shown"): ({"type": "string"}, True)}


def test_what_is_awaited_is_read_and_what_cannot_be_known_is_not() -> None:
    assert list(read(awaited)) == [("json", "text"), ("json", "kind")]
    assert read(hidden) == read(len) == {}


async def answered(path: str, kind: bytes, body: bytes, status: int = 200, document: JsonValue = None, **headers: str) -> Any:
    """Status, type and body of what comes through the facade."""

    async def app(scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        given = [(b"content-type", kind), *((name.encode(), value.encode()) for name, value in headers.items())]
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": body[:2], "more_body": True})
        await send({"type": "http.response.body", "body": body[2:]})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await Facade(app, document)({"type": "http", "path": path}, None, send)
    whole = b"".join(one.get("body", b"") for one in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"])[b"content-type"], whole


DESCRIBED: JsonValue = {"paths": {}}
JSON = b"application/json"


@pytest.mark.parametrize(
    ("kind", "body", "status", "headers", "expected"),
    [
        (b"text/html; charset=latin-1", b"<p>\xe9</p>", 200, {}, (200, JSON, b'"<p>\\u00e9</p>"')),
        (b"text/plain", b"", 302, {"location": "/x"}, (200, JSON, b'{"status": 302, "location": "/x"}')),
        (JSON, b'{"a": 1}', 200, {}, (200, JSON, b'{"a": 1}')),
        (b"text/html", b"not there", 404, {}, (404, b"text/html", b"not there")),
        (b"text/event-stream", b"data: 1", 200, {}, (200, b"text/event-stream", b"data: 1")),
        (b"application/xml", b"<a/>", 200, {}, (200, JSON, b'"<a/>"')),
    ],
)
@pytest.mark.parametrize("document", [DESCRIBED, None])
async def test_pages_and_redirects_are_given_as_json_and_all_else_as_it_is(
    kind: bytes, body: bytes, status: int, headers: dict[str, str], expected: object, document: JsonValue
) -> None:
    assert await answered("/x", kind, body, status, document, **headers) == expected


async def test_an_app_that_describes_itself_answers_for_itself() -> None:
    assert await answered(HEALTH, b"text/html", b"own") == (200, JSON, b'"own"')
    status, _, body = await answered(DOCUMENT, b"text/html", b"own", document=DESCRIBED)
    assert (status, json.loads(body)) == (200, DESCRIBED)


def test_of_a_repository_that_is_too_large_the_folder_of_the_app_is_brought(tmp_path: Path) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)
    for number in range(15_001):
        (tmp_path / f"{number}.txt").touch()
    plan = AsgiBuild(module="main", attribute="app", root="app/src", project="app")
    assert with_room(plan, tmp_path) == (plan.model_copy(update={"root": "src", "project": ""}), tmp_path / "app")
    for other in ({"root": ""}, {"project": ""}, {"root": "app/../.."}):
        with pytest.raises(ValueError, match="5,001 files"):
            with_room(plan.model_copy(update=other), tmp_path)
