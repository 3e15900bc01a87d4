"""How our launcher reads views and converts answers; without a sandbox, on the service's own Python."""

import json
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from engine.making import node_projects
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
    """Status, type and body of an answer through the facade."""

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
JSON = "application/json"


HTML, PLAIN, LARGE = "text/html", "text/plain", b"x" * (16 << 20)

ANSWERS: Sequence[tuple[int, str, bytes, Mapping[str, str], tuple[int, str, JsonValue]]] = [
    (200, "text/html; charset=iso-8859-1", b"<p>\xe9</p>", {}, (200, JSON, "<p>\u00e9</p>")),
    (200, "text/html; charset=none-such", b"<p>", {}, (200, JSON, "<p>")),
    (200, "application/json", b'{"a": 1}', {}, (200, JSON, {"a": 1})),
    # JSON is JSON, whatever it says that it is.
    (200, PLAIN, b' {"a": 1}\n', {}, (200, JSON, {"a": 1})),
    (200, HTML, b"[1]", {}, (200, JSON, [1])),
    (200, PLAIN, b"[1", {}, (200, JSON, "[1")),
    (200, PLAIN, b"[NaN]", {}, (200, JSON, "[NaN]")),
    (200, PLAIN, b"12", {}, (200, JSON, "12")),
    (200, PLAIN, b"", {}, (200, JSON, "")),
    (200, "application/xml", b"<a/>", {}, (200, JSON, "<a/>")),
    (200, "application/rss+xml; charset=utf-8", b"<a/>", {}, (200, JSON, "<a/>")),
    (200, "application/yaml", b"a: 1", {}, (200, "application/yaml", "a: 1")),
    (200, "text/event-stream", b"data: 1", {}, (200, "text/event-stream", "data: 1")),
    (200, PLAIN, b"\x1f\x8b", {"content-encoding": "gzip"}, (200, PLAIN, "\x1f\x8b")),
    (302, PLAIN, b"", {"location": "/x"}, (200, JSON, {"status": 302, "location": "/x"})),
    (304, PLAIN, b"", {}, (304, PLAIN, "")),
    (204, PLAIN, b"", {}, (204, PLAIN, "")),
    (404, HTML, b"not there", {}, (404, HTML, "not there")),
    (200, PLAIN, LARGE, {}, (200, JSON, LARGE.decode())),
    (200, PLAIN, LARGE + b"x", {}, (502, JSON, {"error": "the page is larger than 16777216 bytes"})),
]
"""Of an app: status, type, body and headers; and what comes of them: status, type and value."""


def as_told(status: int, kind: str, body: bytes) -> tuple[int, str, JsonValue]:
    return status, kind, json.loads(body) if kind == JSON else body.decode("latin-1")


@pytest.mark.parametrize("document", [DESCRIBED, None])
async def test_pages_and_redirects_are_given_as_json_and_all_else_as_it_is(document: JsonValue) -> None:
    for status, kind, body, headers, expected in ANSWERS:
        told = await answered("/x", kind.encode(), body, status, document, **headers)
        assert as_told(told[0], told[1].decode(), told[2]) == expected


FACADE = Path(node_projects.__file__).parent / "inside/facade.mjs"
THROUGH = """
import http from "node:http";
const { facade } = await import(process.argv[1]);
let answers = "";
for await (const part of process.stdin) answers += part;
answers = JSON.parse(answers);
const app = http.createServer((request, response) => {
  const [status, kind, body, headers] = answers[Number(request.url.slice(1))];
  response.writeHead(status, { "content-type": kind, ...headers }).end(Buffer.from(body, "base64"));
});
await new Promise((done) => app.listen(0, "127.0.0.1", done));
const front = facade(app, async () => undefined);
await new Promise((done) => front.listen(0, "127.0.0.1", done));
const told = [];
for (const place of answers.keys()) {
  const got = await new Promise((done) => http.get({ port: front.address().port, path: `/${place}` }, done));
  const parts = [];
  for await (const part of got) parts.push(part);
  told.push([got.statusCode, got.headers["content-type"], Buffer.concat(parts).toString("base64")]);
}
process.stdout.write(JSON.stringify(told), () => process.exit());
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine.")
def test_the_facade_of_node_js_apps_gives_the_same() -> None:
    answers = json.dumps([(status, kind, b64encode(body).decode(), headers) for status, kind, body, headers, _ in ANSWERS])
    command = ["node", "--input-type=module", "--eval", THROUGH, FACADE.as_uri()]
    ran = subprocess.run(command, input=answers, capture_output=True, text=True, timeout=60, check=True)
    told = [as_told(status, kind, b64decode(body)) for status, kind, body in json.loads(ran.stdout)]
    assert told == [expected for *_, expected in ANSWERS]


async def test_an_app_that_describes_itself_answers_for_itself() -> None:
    assert await answered(HEALTH, b"text/html", b"own") == (200, JSON.encode(), b'"own"')
    status, _, body = await answered(DOCUMENT, b"text/html", b"own", document=DESCRIBED)
    assert (status, json.loads(body)) == (200, DESCRIBED)


def test_of_a_repository_that_is_too_large_the_folder_of_the_app_is_brought(tmp_path: Path) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(49 << 20)
    plan = AsgiBuild(module="main", attribute="app", root="app/src", project="app")
    assert with_room(plan, tmp_path) == (plan.model_copy(update={"root": "src", "project": ""}), tmp_path / "app")
    for other in ({"root": ""}, {"project": ""}, {"root": "app/../.."}):
        with pytest.raises(ValueError, match=r"49\.0 MiB"):
            with_room(plan.model_copy(update=other), tmp_path)
