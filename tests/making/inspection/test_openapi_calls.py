"""Tools of an OpenAPI document can be called: a real application, its own document, real requests."""

import socket
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path as FilePath
from typing import Annotated

import pytest
import pytest_asyncio
import uvicorn
from fastapi import Body, FastAPI, Header, Path, Query, Security
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from fastapi.security import APIKeyHeader, APIKeyQuery, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, JsonValue

from engine.making.openapi.documents.document import OpenApiDocument
from engine.making.openapi.sources import remote_sources
from engine.making.openapi.tools import Described, Drafted, draft
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.runtime import ToolRequest
from tests.runtimes.conftest import silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import SideEffectScope
from toolagent.contracts.sources import RemoteSource
from toolagent.validation.schemas import issues_of


class Item(BaseModel):
    id: str
    price: float = 1.5
    parts: list["Item"] = []


async def health() -> str:
    return "ok"


async def read_item(item_id: int, tag: Annotated[list[str], Query()], x_unit: Annotated[str, Header()] = "kg") -> dict[str, JsonValue]:
    return {"item_id": item_id, "tag": [*tag], "unit": x_unit}


async def write_item(id: Annotated[str, Path()], item: Item, loud: bool, body: int = 0) -> dict[str, JsonValue]:
    return {"id": id, "item": item.model_dump(), "loud": loud, "body": body}


async def put_list(items: list[int]) -> list[int]:
    return items[::-1]


async def maybe(item: Annotated[Item | None, Body()] = None) -> Item | None:
    return item


async def delete_item(item_id: int, force: bool = False) -> dict[str, bool]:
    return {str(item_id): force}


async def search(words: str, limit: int = 3) -> dict[str, JsonValue]:
    return {"words": words, "limit": limit}


async def page() -> str:
    return "<p>"


async def note(kind: str) -> Response:
    texts = {"json": b'{"a": 1}', "number": b"12", "empty": b"", "latin": "größer".encode("latin-1")}
    return Response(texts[kind], media_type=f"text/plain; charset={'iso-8859-1' if kind == 'latin' else 'utf-8-x'}")


async def by_header(key: Annotated[str, Security(APIKeyHeader(name="X-Key"))]) -> str:
    return key


async def by_query(key: Annotated[str, Security(APIKeyQuery(name="key"))]) -> str:
    return key


async def by_bearer(key: Annotated[HTTPAuthorizationCredentials, Security(HTTPBearer())]) -> str:
    return key.credentials


def application() -> FastAPI:
    app = FastAPI(title="Shop")
    app.get("/health")(health)
    app.get("/items/{item_id}")(read_item)
    app.post("/items/{id}")(write_item)
    app.put("/list")(put_list)
    app.patch("/maybe")(maybe)
    app.delete("/items/{item_id}")(delete_item)
    app.post("/search")(search)
    app.get("/page", response_class=HTMLResponse)(page)
    app.get("/note", response_class=PlainTextResponse)(note)
    app.get("/by-header")(by_header)
    app.get("/by-query")(by_query)
    app.get("/by-bearer")(by_bearer)
    return app


@pytest.fixture(scope="module")
def drafted() -> Generator[Drafted]:
    app = application()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        document: dict[str, JsonValue] = {**app.openapi(), "servers": [{"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}]}
        read = OpenApiDocument.of(document)
        yield draft(read, Described("shop"), remote_sources(read, "shop"))
        server.should_exit = True
        serving.join()


@pytest_asyncio.fixture
async def runtime(drafted: Drafted) -> AsyncGenerator[RemoteRuntime]:
    source = drafted.candidate.entries[0].sources[0]
    assert isinstance(source, RemoteSource)
    assert source.only_public
    http = HttpExchange(public=PublicServers((source.remote_url.removeprefix("http://"),)))
    yield RemoteRuntime(http, {"SHOP_API_KEY": "the-key-of-the-shop"}.get)
    await http.aclose()


def entry_of(drafted: Drafted, tool_id: str) -> ToolEntry:
    return next(entry for entry in drafted.candidate.entries if entry.manifest.tool_id == tool_id)


async def called(runtime: RemoteRuntime, entry: ToolEntry, **params: JsonValue) -> JsonValue:
    """The answer. Parameters must fit the tool's input schema, and the answer its output schema."""
    assert issues_of(entry.manifest.input_schema, params) == ()
    source = entry.sources[0]
    assert isinstance(source, RemoteSource)
    running = await runtime.start(entry.manifest, source, silent)
    answer = await runtime.call(running, source, ToolRequest("call-12345678", params, 20.0, FilePath("/nonexistent")))
    assert issues_of(entry.manifest.output_schema, answer) == ()
    return answer


def test_each_operation_is_a_tool_of_one_group(drafted: Drafted) -> None:
    ids = tuple(entry.manifest.tool_id for entry in drafted.candidate.entries)
    named = (
        "read_item", "write_item", "delete_item", "put_list", "maybe", "search", "page", "note", "by_header", "by_query", "by_bearer",
    )  # fmt: skip
    assert sorted(ids) == sorted(f"shop_{name}" for name in named)
    assert drafted.candidate.group is not None
    assert drafted.candidate.group.tool_ids == ids
    assert all(entry.manifest.group_ids == ("shop",) for entry in drafted.candidate.entries)


def test_what_is_no_tool_is_left_out_with_its_reason(drafted: Drafted) -> None:
    assert {one.operation for one in drafted.left_out} == {"GET /health"}


def test_only_reading_has_no_side_effects(drafted: Drafted) -> None:
    harmless = {entry.manifest.tool_id for entry in drafted.candidate.entries if entry.manifest.side_effect_scope is SideEffectScope.NONE}
    assert harmless == {"shop_read_item", "shop_page", "shop_note", "shop_by_header", "shop_by_query", "shop_by_bearer"}


async def test_path_query_and_header_are_filled(drafted: Drafted, runtime: RemoteRuntime) -> None:
    entry = entry_of(drafted, "shop_read_item")
    assert await called(runtime, entry, item_id=3, tag=["a", "b"], x_unit="g") == {"item_id": 3, "tag": ["a", "b"], "unit": "g"}
    assert await called(runtime, entry, item_id=3, tag=["a"]) == {"item_id": 3, "tag": ["a"], "unit": "kg"}


async def test_names_that_path_query_and_body_share_are_kept_apart(drafted: Drafted, runtime: RemoteRuntime) -> None:
    item: JsonValue = {"id": "inner", "price": 2.0, "parts": [{"id": "part"}]}
    whole: JsonValue = {"id": "inner", "price": 2.0, "parts": [{"id": "part", "price": 1.5, "parts": []}]}
    answer = await called(runtime, entry_of(drafted, "shop_write_item"), path_id="a b", loud=True, body=7, **_spread(item))
    assert answer == {"id": "a b", "item": whole, "loud": True, "body": 7}


async def test_a_body_that_is_no_object_is_one_parameter(drafted: Drafted, runtime: RemoteRuntime) -> None:
    assert await called(runtime, entry_of(drafted, "shop_put_list"), body=[1, 2]) == [2, 1]


async def test_a_body_that_may_be_missing_is_not_sent_then(drafted: Drafted, runtime: RemoteRuntime) -> None:
    assert await called(runtime, entry_of(drafted, "shop_maybe")) is None
    assert await called(runtime, entry_of(drafted, "shop_maybe"), body={"id": "x"}) == {"id": "x", "price": 1.5, "parts": []}


async def test_a_post_with_a_query_and_no_body(drafted: Drafted, runtime: RemoteRuntime) -> None:
    assert await called(runtime, entry_of(drafted, "shop_search"), words="a&b", limit=2) == {"words": "a&b", "limit": 2}


async def test_a_delete_with_a_query(drafted: Drafted, runtime: RemoteRuntime) -> None:
    assert await called(runtime, entry_of(drafted, "shop_delete_item"), item_id=1, force=True) == {"1": True}


async def test_a_text_is_the_result_or_what_it_holds(drafted: Drafted, runtime: RemoteRuntime) -> None:
    assert await called(runtime, entry_of(drafted, "shop_page")) == "<p>"
    answers = [await called(runtime, entry_of(drafted, "shop_note"), kind=kind) for kind in ("json", "number", "empty", "latin")]
    assert answers == [{"a": 1}, "12", "", "größer"]


@pytest.mark.parametrize("tool_id", ["shop_by_header", "shop_by_query", "shop_by_bearer"])
async def test_a_key_is_a_secret_that_is_named(drafted: Drafted, runtime: RemoteRuntime, tool_id: str) -> None:
    entry = entry_of(drafted, tool_id)
    # That it came, and that it is masked in what comes back.
    assert await called(runtime, entry) == "***"
    assert "the-key-of-the-shop" not in entry.model_dump_json()


async def test_a_header_that_holds_a_line_break_is_not_sent(drafted: Drafted, runtime: RemoteRuntime) -> None:
    entry = entry_of(drafted, "shop_read_item")
    params: dict[str, JsonValue] = {"item_id": 1, "tag": ["a"], "x_unit": "g\r\nX-Other: 1"}
    assert [issue.path for issue in issues_of(entry.manifest.input_schema, params)] == ["$.x_unit"]
    loose: JsonSchema = {}
    with pytest.raises(RuntimeFailure) as caught:
        await called(runtime, entry.model_copy(update={"manifest": entry.manifest.model_copy(update={"input_schema": loose})}), **params)
    assert caught.value.details == {"path": "$.x_unit"}


def _spread(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    return value
