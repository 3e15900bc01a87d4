"""External tool tables at the front door: registered, found, refreshed, removed; and refused ones."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from engine.external.fetching import ALLOW_SETTING, TableFetch
from engine.external.reading import TableReader
from engine.external.tables import Tables
from engine.runtimes.http.destination import Destinations
from engine.store.database import Database
from engine.store.external_tables import ExternalTableRows
from tests.api.conftest import ECHO, House, external_tables
from toolagent.contracts.external_tables import ExternalTable
from toolagent.contracts.manifest import PermissionClass, ToolStatus
from toolagent.contracts.sources import BuiltinSource, RemoteSource
from toolagent.testing.servers.serving import ServerThread

TEXT: JsonValue = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
KNOWHUB: JsonValue = [
    {
        "id": "tools/text/upper",
        "title": "Upper",
        "description": "Makes a text upper case",
        "metadata": {"tool_slug": "upper", "endpoint": "/upper", "input_schema": TEXT},
    },
    {"id": "tools/image_gen/comfyui", "title": "ComfyUI", "metadata": {"tool_slug": "comfyui"}},
    {"id": "tools/text/upper_again", "metadata": {"tool_slug": "upper"}},
    {"id": "tools/text/liar", "metadata": {"endpoint": "/x", "input_schema": {"type": "nonsense"}}},
    {"id": "tools/text/files", "metadata": {"endpoint": "/x", "input_schema": {"properties": {"p": {"format": "file-path"}}}}},
    {"id": "tools/text/bad_url", "metadata": {"endpoint": "ftp://x/y"}},
    {"id": "articles/hello", "title": "No tool"},
]
OPENAPI: JsonValue = {
    "openapi": "3.1.0",
    "info": {"title": "Greeter"},
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    "security": [{"key": []}],
    "paths": {"/hello": {"get": {"operationId": "sayHello", "responses": {"200": {"content": {"application/json": {}}}}}}},
}


@dataclass
class Site:
    """A site with tables: the answer of each path, and the keys that it received."""

    answers: dict[str, JsonValue | Callable[[], Response]] = field(default_factory=dict[str, JsonValue | Callable[[], Response]])
    keys: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        self.keys.append((path, request.headers.get("authorization")))
        if path == "/slow":
            await self.hanging.wait()
        said = self.answers.get(path)
        return said() if callable(said) else JSONResponse(said, 404 if said is None else 200)


@pytest_asyncio.fixture
async def site() -> AsyncGenerator[Site]:
    site = Site({"/api/resource": KNOWHUB, "/openapi.json": OPENAPI})
    app = Starlette(routes=[Route("/{rest:path}", site.answer, methods=["GET", "POST"])])
    async with ServerThread(app) as server:
        site.url = server.url
        yield site


async def register(house: House, source: str, url: str, key: str | None = None) -> httpx.Response:
    body = {"source": source, "tools_url": url, **({"api_key": key} if key else {})}
    return await house.http.post("/external_tools/register", json=body)


def refused(answer: httpx.Response) -> tuple[int, str, str]:
    """The status, the type of the problem, and the field."""
    problem = answer.json()
    return answer.status_code, problem["type"], problem["errors"][0]["field"]


async def test_the_tools_of_a_table_are_found_with_their_origin_and_the_rest_is_told(stocked: House, site: Site, tmp_path: Path) -> None:
    answer = await register(stocked, "hub", f"{site.url}/api/resource", "the-key")
    table = ExternalTable.model_validate_json(answer.content)
    assert (answer.status_code, table.form, table.tools, table.api_key) == (200, "knowhub", 2, "secret:EXTERNAL_HUB_API_KEY")
    assert {one.entry for one in table.left_out} == {"hub:upper", "tools/text/liar", "tools/text/files", "tools/text/bad_url"}
    assert "the-key" not in answer.text
    assert await asyncio.to_thread((tmp_path / "secrets").read_text) == "EXTERNAL_HUB_API_KEY=the-key\n"
    found = (await stocked.http.post("/search_tools", json={"keyword": "make my text upper case", "limit": 1})).json()["tools"][0]
    assert (found["tool_id"], found["external_source"], found["required_params"]) == ("hub:upper", "hub", ["text"])
    upper, described = await stocked.registry.entry("hub:upper"), await stocked.registry.get("hub:comfyui")
    assert upper is not None
    assert described is not None
    assert (upper.manifest.permission_class, upper.manifest.repeatable) == (PermissionClass.EXTERNAL, False)
    assert (described.status, described.category) == (ToolStatus.INACTIVE, "image_gen")
    source = upper.sources[0]
    assert isinstance(source, RemoteSource)
    assert (source.remote_url, source.endpoint_path, source.table, source.only_public) == (site.url, "/upper", "hub", True)
    assert (await stocked.http.get("/external_tools")).json()["tables"] == [answer.json()]
    assert "hub:upper" not in (await stocked.http.get("/catalog")).text


async def test_another_tool_agent_is_asked_for_its_schemas_and_called_by_its_own_route(house: House, site: Site) -> None:
    site.answers["/tools"] = {"tools": [{"tool_id": "acme:echo", "name": "Echo", "description": "", "version": "1.2.0"}]}
    site.answers["/search_tools"] = {"tools": [{"tool_id": "acme:echo", "input_schema": TEXT}]}
    assert (await register(house, "far", f"{site.url}/tools")).json()["form"] == "tool_agent"
    entry = await house.registry.entry("far:acme_echo")
    assert entry is not None
    assert (entry.manifest.version, entry.manifest.input_schema) == ("1.2.0", TEXT)
    source = entry.sources[0]
    assert isinstance(source, RemoteSource)
    assert source.envelope is not None
    assert (source.endpoint_path, source.envelope.fixed) == ("/run_tool", {"tool_id": "acme:echo"})


async def test_a_tool_agent_whose_search_fails_for_a_while_keeps_its_schemas(house: House, site: Site) -> None:
    site.answers["/tools"] = {"tools": [{"tool_id": "echo"}]}
    site.answers["/search_tools"] = {"tools": [{"tool_id": "echo", "input_schema": TEXT}]}
    await register(house, "far", f"{site.url}/tools")
    schemas: list[JsonValue] = []
    for status in (503, 405):
        site.answers["/search_tools"] = lambda status=status: Response("", status)
        error = (await house.http.post("/external_tools/far/refresh")).json()["error"]
        entry = await house.registry.entry("far:echo")
        assert entry is not None
        schemas += [error, entry.manifest.input_schema]
    assert schemas == ["Its schemas, from /search_tools: It answered 503.", TEXT, "", {}]


async def test_an_openapi_document_shows_its_operations_the_key_of_the_table(house: House, site: Site) -> None:
    assert (await register(house, "greet", f"{site.url}/openapi.json", "the-key")).json()["tools"] == 1
    entry = await house.registry.entry("greet:say_hello")
    assert entry is not None
    source = entry.sources[0]
    assert isinstance(source, RemoteSource)
    assert (source.remote_url, source.remote_api_key) == (site.url, "secret:EXTERNAL_GREET_API_KEY")
    assert not entry.manifest.repeatable


async def test_a_key_is_shown_to_the_tables_own_server_only(house: House, site: Site) -> None:
    endpoint: JsonValue = {"id": "tools/a/b", "metadata": {"endpoint": "https://elsewhere.example/x"}}
    site.answers["/list"] = [endpoint]

    async def away(_request: Request) -> Response:
        return RedirectResponse(f"{site.url}/list")

    async with ServerThread(Starlette(routes=[Route("/away", away)])) as other:
        assert (await register(house, "hub", f"{other.url}/away", "the-key")).json()["tools"] == 1
    assert site.keys == [("/list", None)]
    entry = await house.registry.entry("hub:b")
    assert entry is not None
    assert [getattr(source, "remote_api_key", "") for source in entry.sources] == [None]


async def test_a_key_goes_neither_to_where_a_list_redirects_nor_to_servers_that_a_document_names(house: House, site: Site) -> None:
    """Neither the request for the schemas nor calls of the tools carry the key."""
    site.answers["/tools"] = {"tools": [{"tool_id": "echo"}]}
    site.answers["/search_tools"] = {"tools": []}

    async def answer(request: Request) -> Response:
        if request.url.path == "/tools":
            return RedirectResponse(f"{site.url}/tools")
        assert isinstance(OPENAPI, dict)
        return JSONResponse({**OPENAPI, "servers": [{"url": "https://elsewhere.example"}]})

    async with ServerThread(Starlette(routes=[Route("/{rest:path}", answer)])) as other:
        assert (await register(house, "far", f"{other.url}/tools", "the-key")).json()["tools"] == 1
        table = (await register(house, "greet", f"{other.url}/openapi.json", "the-key")).json()
    assert site.keys == [("/tools", None), ("/search_tools", None)]
    entry = await house.registry.entry("far:echo")
    assert entry is not None
    assert [source.traits.secrets for source in entry.sources] == [()]
    reason = "It would show the table's key to another server. Give a `tools_url` at the server that it is called at, or no key."
    assert table["left_out"] == [{"entry": "greet:say_hello", "reason": reason}]


async def test_a_private_address_is_403_also_behind_a_redirect_or_a_name(house: House, site: Site) -> None:
    site.answers["/away"] = lambda: RedirectResponse("http://169.254.169.254/latest")
    for url in ("http://10.0.0.1/tools", f"{site.url}/away", "http://[::1]:1/tools"):
        assert refused(await register(house, "x", url)) == (403, "security_error", "tools_url")


BAD: dict[str, JsonValue | Callable[[], Response]] = {
    "not-found": None,
    "not-json": lambda: Response("<html>", media_type="text/html"),
    "no-table": {"hello": "you"},
    "huge": lambda: Response(json.dumps(KNOWHUB).encode() + b" " * 300_000),
    "broken": lambda: Response("oops", 500),
    "turns": lambda: RedirectResponse("/turns"),
    "many": [{"id": f"tools/a/t{number}"} for number in range(2_001)],
    "slow": {},
}


async def test_a_key_that_no_header_can_hold_is_422(house: House, site: Site) -> None:
    assert refused(await register(house, "x", f"{site.url}/list", "sk-…")) == (422, "invalid_request", "api_key")


async def test_a_host_that_is_nowhere_is_a_fault_of_the_url_and_one_that_nobody_knows_now_is_none(house: House) -> None:
    assert refused(await register(house, "x", "https://nowhere.example/list")) == (422, "invalid_request", "tools_url")
    later = await register(house, "x", "https://later.example/list")
    assert (later.status_code, later.json()["type"]) == (502, "server_not_reached")


@pytest.mark.parametrize("path", BAD)
async def test_a_table_that_cannot_be_used_is_422_and_leaves_nothing(house: House, site: Site, path: str, tmp_path: Path) -> None:
    site.answers[f"/{path}"] = BAD[path]
    try:
        assert refused(await register(house, "x", f"{site.url}/{path}", "the-key")) == (422, "invalid_request", "tools_url")
    finally:
        site.hanging.set()
    assert (await house.http.get("/external_tools")).json()["tables"] == []
    assert not await asyncio.to_thread((tmp_path / "secrets").exists)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"source": "Not An Id", "tools_url": "https://a.example"}, "source"),
        *(({"source": source, "tools_url": "https://a.example"}, "source") for source in ("sh-op", "sh_", "a__b")),
        ({"source": "x", "tools_url": ""}, "tools_url"),
        *(
            ({"source": "x", "tools_url": url}, "tools_url")
            for url in ("ftp://a.example", "a.example/x", "http:///x", "http://a.example:0")
        ),
        ({"source": "x", "tools_url": "http://a.example:70000"}, "tools_url"),
        ({"source": "x", "tools_url": "https://me:pass@a.example"}, "tools_url"),
        ({"source": "x", "tools_url": "https://a.example/?api_key=sk-0123456789abcdef"}, "tools_url"),
        ({"source": "x", "tools_url": "http://a.example/tools", "api_key": "k"}, "tools_url"),
        ({"source": "x", "tools_url": "https://a.example", "key": "k"}, "key"),
    ],
)
async def test_a_registration_of_the_wrong_form_names_the_field(house: House, body: dict[str, JsonValue], field: str) -> None:
    status, _, named = refused(await house.http.post("/external_tools/register", json=body))
    assert (status, named) == (422, field)


async def test_a_name_that_is_taken_is_409(house: House, site: Site) -> None:
    url = f"{site.url}/api/resource"
    await house.registry.register(ECHO.model_copy(update={"tool_id": "ours:echo"}), (BuiltinSource(handler="echo"),))
    await register(house, "hub", url)
    for source in ("hub", "ours"):
        assert refused(await register(house, source, url)) == (409, "table_exists", "source")


async def test_who_loses_a_race_to_a_name_leaves_the_winners_key(house: House, site: Site, tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()

    async def overtaken(_request: Request) -> Response:
        winner = register(house, "hub", f"{site.url}/api/resource", "winners-key")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(winner, loop))
        return JSONResponse(KNOWHUB)

    async with ServerThread(Starlette(routes=[Route("/list", overtaken)])) as other:
        assert refused(await register(house, "hub", f"{other.url}/list", "losers-key")) == (409, "table_exists", "source")
    assert await asyncio.to_thread((tmp_path / "secrets").read_text) == "EXTERNAL_HUB_API_KEY=winners-key\n"


async def test_a_key_that_cannot_be_kept_leaves_no_table(house: House, site: Site, tmp_path: Path) -> None:
    await asyncio.to_thread((tmp_path / "secrets").touch, 0o644)
    assert refused(await register(house, "hub", f"{site.url}/api/resource", "the-key")) == (422, "invalid_request", "api_key")
    assert (await house.http.get("/external_tools")).json()["tables"] == []
    assert await house.registry.list_ids() == ()


async def test_a_refresh_takes_what_changed_and_keeps_what_was_decided_here(house: House, site: Site) -> None:
    site.answers["/list"] = [{"id": f"tools/a/{slug}", "metadata": {"endpoint": "/x"}} for slug in ("kept", "gone", "shut", "removed")]
    await register(house, "hub", f"{site.url}/list")
    await house.registry.deactivate("hub:shut", "1.0.0")
    await house.registry.destroy("hub:removed")
    site.answers["/list"] = [
        {"id": f"tools/a/{slug}", "title": "Anew", "metadata": {"endpoint": "/x"}} for slug in ("kept", "new", "shut", "removed")
    ]
    assert (await house.http.post("/external_tools/hub/refresh")).json()["error"] == ""
    entries = {entry.manifest.tool_id: entry.manifest for entry in await house.registry.list_entries()}
    assert entries.keys() == {"hub:kept", "hub:new", "hub:shut"}
    assert (entries["hub:kept"].name, entries["hub:shut"].status) == ("Anew", ToolStatus.INACTIVE)


async def test_a_refresh_that_fails_keeps_the_tools_and_says_so(house: House, site: Site) -> None:
    before = (await register(house, "hub", f"{site.url}/api/resource")).json()
    site.answers["/api/resource"] = None
    after = (await house.http.post("/external_tools/hub/refresh")).json()
    assert (after["error"], after["tools"], after["refreshed_at"]) == ("It answered 404.", 2, before["refreshed_at"])
    assert await house.registry.get("hub:upper") is not None


@pytest.mark.parametrize(
    "said", [{"openapi": "3.1.0", "servers": [{"url": "http://[bad"}]}, {"swagger": "2.0", "host": "a.example", "basePath": [None]}]
)
async def test_a_document_whose_server_is_no_url_is_422(house: House, site: Site, said: dict[str, JsonValue]) -> None:
    site.answers["/openapi.json"] = {"paths": {}, **said}
    assert refused(await register(house, "x", f"{site.url}/openapi.json")) == (422, "invalid_request", "tools_url")


class _LostKeys:
    """A vault whose keys cannot be read."""

    def resolve(self, name: str) -> str | None:
        raise PermissionError(name)

    def replace(self, name: str, value: str) -> None:
        """Not called."""

    def forget(self, name: str) -> None:
        """Not called."""


async def test_an_error_of_ours_keeps_no_other_table_from_its_turn(house: House, site: Site, database: Database) -> None:
    await register(house, "broken", f"{site.url}/openapi.json", "the-key")
    await register(house, "hub", f"{site.url}/api/resource")
    reader = TableReader(TableFetch(Destinations(("127.0.0.1",), setting=ALLOW_SETTING)))
    said = await Tables(ExternalTableRows(database), reader, _LostKeys(), every_s=0).refresh_due()
    assert said[0].startswith("external table broken: It could not be read: PermissionError.")
    assert said[1] == "external table hub: 2 tools"
    broken = (await house.http.get("/external_tools")).json()["tables"][0]
    assert "PermissionError" in broken["error"]
    assert broken["attempted_at"] > broken["refreshed_at"]


async def test_tables_are_fetched_again_when_they_are_due(house: House, site: Site, database: Database, tmp_path: Path) -> None:
    await register(house, "hub", f"{site.url}/api/resource")
    assert await external_tables(database, tmp_path).refresh_due() == ()
    assert await external_tables(database, tmp_path, every_s=0).refresh_due() == ("external table hub: 2 tools",)


async def test_a_registration_without_a_key_has_none_whatever_is_stored_under_its_name(house: House, site: Site, tmp_path: Path) -> None:
    left = "EXTERNAL_GREET_API_KEY=of-another\n"
    await asyncio.to_thread((tmp_path / "secrets").touch, 0o600)
    await asyncio.to_thread((tmp_path / "secrets").write_text, left)
    table = (await register(house, "greet", f"{site.url}/openapi.json")).json()
    assert (table["api_key"], table["tools"], site.keys) == (None, 0, [("/openapi.json", None)])
    assert table["left_out"][0]["reason"] == "It wants to be shown a key, and the table has none. Register the table with `api_key`."
    await house.http.delete("/external_tools/greet")
    assert await asyncio.to_thread((tmp_path / "secrets").read_text) == left


async def test_a_table_goes_with_its_tools_and_its_key(house: House, site: Site, tmp_path: Path) -> None:
    await register(house, "hub", f"{site.url}/api/resource", "the-key")
    assert (await house.http.delete("/external_tools/hub")).json() == {"source": "hub", "tools": 2}
    assert await house.registry.list_ids() == ()
    assert await asyncio.to_thread((tmp_path / "secrets").read_text) == ""
    for ask in (house.http.post("/external_tools/hub/refresh"), house.http.delete("/external_tools/hub")):
        answer = await ask
        assert (answer.status_code, answer.json()["type"]) == (404, "table_not_found")
