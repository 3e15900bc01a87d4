"""OpenAPI documents in the wild: old, split and large ones, forms, files, other servers and secrets."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making.inspection import inspect
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.documents.parsing import parsed_yaml
from engine.making.openapi.documents.reading import DocumentReader
from engine.making.openapi.findings import read_documents
from engine.making.openapi.sources import remote_sources
from engine.making.openapi.tools import MOST_TOOLS, BuildFailed, Described, Drafted, draft
from engine.making.repositories.trees import Tree
from engine.runtimes.environments.execution import Executor
from engine.runtimes.local.runtime import Sandboxing
from engine.runtimes.process.processes import Launcher
from tests.making.inspection.test_openapi import OK, document, drafted, only
from toolagent.contracts.sources import RemoteSource

FILE: JsonValue = {"type": "string", "format": "file-path"}


def source_of(one: Drafted, number: int = 0) -> RemoteSource:
    source = one.candidate.entries[number].sources[0]
    assert isinstance(source, RemoteSource)
    return source


def sending(content: Mapping[str, JsonValue], *, required: bool = True, method: str = "post") -> Drafted:
    body: JsonValue = {"required": required, "content": dict(content)}
    return drafted({"/x": {method: {"requestBody": body, "responses": OK}}})


SWAGGER: dict[str, JsonValue] = {
    "swagger": "2.0",
    "info": {"title": "Old"},
    "host": "old.example.com",
    "basePath": "/v1",
    "schemes": ["http", "https"],
    "consumes": ["application/json"],
    "definitions": {"Pet": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "x-nullable": True}}}},
    "parameters": {"Limit": {"name": "limit", "in": "query", "type": "integer", "maximum": 9}},
    "securityDefinitions": {
        "login": {"type": "basic"},
        "app": {"type": "oauth2", "flow": "application", "tokenUrl": "https://old.example.com/token", "scopes": {"r": ""}},
    },
    "paths": {
        "/pets": {
            "get": {
                "operationId": "list",
                "parameters": [
                    {"$ref": "#/parameters/Limit"},
                    {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}},
                    {"name": "ids", "in": "query", "type": "array", "items": {"type": "integer"}, "collectionFormat": "multi"},
                ],
                "responses": {"200": {"description": "", "schema": {"type": "array", "items": {"$ref": "#/definitions/Pet"}}}},
            },
            "post": {
                "operationId": "add",
                "security": [{"login": []}],
                "parameters": [{"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}],
                "responses": {"204": {"description": ""}},
            },
        },
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "type": "string"}],
            "put": {
                "operationId": "rename",
                "security": [{"app": ["r"]}],
                "consumes": ["application/x-www-form-urlencoded"],
                "parameters": [{"name": "name", "in": "formData", "type": "string", "required": True, "description": "New."}],
                "responses": {"200": {"description": "", "schema": {"$ref": "#/definitions/Pet"}}},
            },
            "post": {
                "operationId": "picture",
                "parameters": [{"name": "image", "in": "formData", "type": "file", "required": True}],
                "responses": {"200": {"description": "", "schema": {"type": "object"}}},
            },
        },
        "/odd": {"get": {"parameters": [{"$ref": "#/parameters/None"}], "responses": {"200": {"description": ""}}}},
        "/image": {"get": {"produces": ["image/png"], "responses": {"200": {"description": "", "schema": {"type": "file"}}}}},
    },
}


def test_a_document_of_swagger_2_gives_the_same_tools() -> None:
    read = OpenApiDocument.read(json.dumps(SWAGGER), is_json=True)
    assert (read.version, read.server_url) == ("2.0", "https://old.example.com/v1")
    one = draft(read, Described("old"), remote_sources(read, "old"))
    by_id = {entry.manifest.tool_id: (entry.manifest, source_of(one, at)) for at, entry in enumerate(one.candidate.entries)}
    assert sorted(by_id) == ["old_add", "old_list", "old_picture", "old_rename"]
    listing, called = by_id["old_list"]
    assert listing.input_schema["properties"] == {
        "limit": {"type": "integer", "maximum": 9},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}},
    }
    assert (called.parameter_styles, listing.output_schema["type"]) == ({"tags": "comma"}, "array")
    added, called = by_id["old_add"]
    assert added.input_schema["properties"] == {"name": {"type": ["string", "null"]}}
    assert (called.auth_kind, called.remote_api_key) == ("basic", "secret:OLD_LOGIN")
    renamed, called = by_id["old_rename"]
    assert (called.body_encoding, called.auth_kind, called.remote_api_key) == ("form", "client_credentials", "secret:OLD_CLIENT")
    assert (called.token_url, called.token_scopes) == ("https://old.example.com/token", ("r",))
    assert renamed.input_schema["properties"] == {
        "id": {"type": "string", "minLength": 1},
        "name": {"type": "string", "description": "New."},
    }
    pictured, called = by_id["old_picture"]
    assert (called.body_encoding, called.file_parameters) == ("multipart", ("image",))
    assert pictured.input_schema["required"] == ["id", "image"]
    assert {left.operation: left.reason for left in one.left_out} == {
        "GET /odd": "'#/parameters/None' refers to what is not in the document.",
        "GET /image": "It answers with image/png only, neither JSON nor text.",
    }


def test_a_form_is_a_form_and_where_it_has_a_file_it_has_parts() -> None:
    fields: JsonValue = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    one = sending({"application/x-www-form-urlencoded": {"schema": fields, "encoding": {"a": {"style": "deepObject"}}}})
    assert (source_of(one).body_encoding, source_of(one).parameter_styles) == ("form", {"a": "deep"})
    assert only(one).input_schema["required"] == ["a"]
    many: JsonValue = {"type": "array", "items": {"type": "string", "format": "binary"}}
    new: JsonValue = {"type": "string", "contentMediaType": "application/octet-stream", "description": "What is read."}
    files: JsonValue = {"type": "object", "properties": {"a": {"type": "string"}, "one": new, "many": many}}
    one = sending({"multipart/form-data": {"schema": files}, "application/x-www-form-urlencoded": {"schema": files}})
    assert (source_of(one).body_encoding, source_of(one).file_parameters) == ("multipart", ("one", "many"))
    assert only(one).input_schema["properties"] == {
        "a": {"type": "string"},
        "one": {"type": "string", "format": "file-path", "description": "What is read."},
        "many": {"type": "array", "items": FILE},
    }


def test_json_goes_before_a_form_and_a_form_before_a_file() -> None:
    binary: JsonValue = {"schema": {"type": "string", "format": "binary"}}
    form: JsonValue = {"schema": {"type": "object", "properties": {"a": {}}}}
    kinds = {"application/octet-stream": binary, "application/x-www-form-urlencoded": form, "application/json": form}
    assert source_of(sending(kinds)).body_encoding == "json"
    del kinds["application/json"]
    assert source_of(sending(kinds)).body_encoding == "form"
    del kinds["application/x-www-form-urlencoded"]
    one = sending({**kinds, "image/png": binary})
    called = source_of(one)
    assert (called.body_encoding, called.body_parameter, called.file_parameters) == ("octets", "file", ("file",))
    assert called.body_media_type == "application/octet-stream"
    assert only(one).input_schema["required"] == ["file"]


def test_json_of_a_type_of_its_own_is_sent_as_that() -> None:
    called = source_of(sending({"application/json-patch+json; charset=utf-8": {"schema": {"type": "array"}}}))
    assert (called.body_encoding, called.body_media_type) == ("json", "application/json-patch+json")
    assert source_of(sending({"application/json": {}, "application/x+json": {}})).body_media_type == ""


def test_a_file_may_be_one_of_several_forms_and_goes_before_json_that_cannot_hold_it() -> None:
    binary: JsonValue = {"type": "string", "format": "binary"}
    fields: dict[str, JsonValue] = {
        "image": {"oneOf": [binary, {"type": "array", "items": binary}], "description": "D"},
        "mask": {"anyOf": [binary, {"type": "null"}]},
        "name": {"anyOf": [binary, {"type": "string"}]},
    }
    content: JsonValue = {"schema": {"type": "object", "properties": fields}}
    one = sending({"application/json": content, "multipart/form-data": content})
    assert (source_of(one).body_encoding, source_of(one).file_parameters) == ("multipart", ("image", "mask"))
    properties = only(one).input_schema["properties"]
    assert isinstance(properties, dict)
    assert properties["image"] == {"description": "D", "anyOf": [FILE, {"type": "array", "items": FILE}]}
    assert properties["mask"] == {"anyOf": [FILE, {"type": "null"}]}


def test_a_delete_may_have_a_body_and_what_has_none_sends_none() -> None:
    one = sending({"application/json": {"schema": {"type": "object", "properties": {"why": {}}}}}, method="delete")
    assert (source_of(one).body_parameter, only(one).input_schema["required"]) == ("body", ["body"])
    assert source_of(drafted({"/x": {"post": {"responses": OK}}})).body_encoding == "none"


@pytest.mark.parametrize(
    ("parameter", "style"),
    [
        ({"in": "query", "schema": {"type": "array"}}, None),
        ({"in": "query", "schema": {"type": "array"}, "explode": False}, "comma"),
        ({"in": "query", "schema": {"type": "array"}, "style": "pipeDelimited"}, "pipe"),
        ({"in": "query", "schema": {"type": "array"}, "style": "spaceDelimited", "explode": True}, None),
        ({"in": "query", "schema": {"$ref": "#/components/schemas/O"}, "style": "deepObject"}, "deep"),
        ({"in": "query", "schema": {"$ref": "#/components/schemas/O"}}, "fields"),
        ({"in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}, "json"),
        ({"in": "header", "schema": {"type": "array"}}, "comma"),
    ],
)
def test_a_parameter_is_written_as_the_document_says(parameter: dict[str, JsonValue], style: str | None) -> None:
    operation: JsonValue = {"parameters": [{"name": "p", "required": True, **parameter}], "responses": OK}
    one = drafted({"/x": {"get": operation}}, components={"schemas": {"O": {"type": "object"}}})
    assert source_of(one).parameter_styles == ({"p": style} if style else {})


def test_what_a_tool_cannot_send_is_said() -> None:
    parameters: JsonValue = [{"name": "c", "in": "cookie"}, {"name": "m", "in": "query", "style": "matrix", "schema": {}}]
    get: JsonValue = {"parameters": parameters, "requestBody": {"content": {"application/json": {}}}, "responses": OK}
    one = drafted({"/x": {"get": get, "trace": {}}, "/y": {"$ref": "https://elsewhere.example.com/paths.yaml"}})
    told = [f"{left.operation}: {left.reason}" for left in one.left_out]
    for said in ("'c'", "'m'", "application/json", "TRACE requests are not sent", "* /y"):
        assert sum(said in line for line in told) == 1, told


def test_an_operation_that_names_a_server_of_its_own_is_called_there() -> None:
    here: dict[str, JsonValue] = {"get": {"responses": OK}}
    there: dict[str, JsonValue] = {"get": {"responses": OK, "servers": [{"url": "https://files.example.com"}]}}
    lost: dict[str, JsonValue] = {"get": {"responses": OK}, "servers": [{"url": "/files"}]}
    one = drafted({"/a": here, "/b": there, "/c": lost})
    assert [source_of(one, at).remote_url for at in range(2)] == ["https://api.example.com/v1", "https://files.example.com"]
    assert [left.operation for left in one.left_out] == ["GET /c"]
    read = document({"/a": here, "/b": there, "/c": lost}).served_at("http://127.0.0.1:4010/")
    one = draft(read, Described("tool"), remote_sources(read, "tool"))
    assert {source_of(one, at).remote_url for at in range(3)} == {"http://127.0.0.1:4010"}


def test_the_first_server_with_an_absolute_address_counts() -> None:
    assert document({}, servers=[{"url": "/api"}, {"url": "https://b.example.com/"}]).server_url == "https://b.example.com"


@pytest.mark.parametrize(
    ("scheme", "shown"),
    [
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, {"auth_cookie": "sid", "remote_api_key": "secret:TOOL_API_KEY"}),
        ({"type": "http", "scheme": "Basic"}, {"auth_kind": "basic", "remote_api_key": "secret:TOOL_LOGIN"}),
        (
            {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://a.example.com/t", "scopes": {}}}},
            {"auth_kind": "client_credentials", "token_url": "https://a.example.com/t", "token_scopes": ("s",)},
        ),
        ({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "http://a.example.com/t"}}}, {"auth_kind": "key"}),
        ({"type": "oauth2", "flows": {"implicit": {}}}, {"auth_kind": "key", "auth_scheme": "Bearer"}),
    ],
)  # fmt: skip
def test_a_secret_is_shown_as_the_document_wants_it(scheme: JsonValue, shown: dict[str, JsonValue]) -> None:
    one = drafted({"/x": {"get": {"responses": OK, "security": [{"s": ["s"]}]}}}, components={"securitySchemes": {"s": scheme}})
    assert source_of(one).model_dump(include=set(shown)) == shown


def many(tags: Mapping[str, int]) -> dict[str, JsonValue]:
    return {
        f"/{tag}/{number}": {"get": {"operationId": f"{tag}{number}", "tags": [tag], "responses": OK}}
        for tag, count in tags.items()
        for number in range(count)
    }


def names(one: Drafted) -> set[str]:
    return {entry.manifest.tool_id.removeprefix("tool_").rstrip("0123456789_") for entry in one.candidate.entries}


def named(paths: Mapping[str, JsonValue], *operations: str) -> Drafted:
    read = document(paths)
    return draft(read, Described("tool", operations=operations), remote_sources(read, "tool"))


def test_of_too_many_operations_whole_tags_become_tools_and_the_others_are_named() -> None:
    one = drafted(many({"a": 60, "b": 70, "c": 40}), tags=[{"name": "c"}, {"name": "b"}])
    assert (names(one), len(one.candidate.entries)) == ({"c", "a"}, MOST_TOOLS)
    assert [left.operation for left in one.left_out] == ["b (70 operations)"]
    untagged: dict[str, JsonValue] = {path: {"get": {"responses": OK}} for path in many({"a": 60, "b": 70})}
    assert names(drafted(untagged)) == {"get_a"}


def test_where_no_tag_fits_the_task_has_to_choose() -> None:
    with pytest.raises(BuildFailed, match=r"`operations`.*a \(101 operations\), b \(102 operations\)"):
        drafted(many({"a": 101, "b": 102}))


@pytest.mark.parametrize(("asked", "count"), [("b", 70), ("b1*", 11), ("GET /b/1*", 11), ("/a/7", 1), ("A5", 1)])
def test_operations_are_chosen_by_id_tag_path_and_pattern(asked: str, count: int) -> None:
    one = named(many({"a": 60, "b": 70}), asked)
    assert len(one.candidate.entries) == count
    assert len(one.left_out) == 1


def test_operations_that_name_nothing_are_answered_with_the_nearest() -> None:
    paths: dict[str, JsonValue] = {"/x": {"get": {"operationId": "listPets", "responses": OK}}}
    with pytest.raises(BuildFailed, match=r"'lisPets'.*listPets"):
        named(paths, "listPets", "lisPets")
    image: JsonValue = {"operationId": "image", "responses": {"200": {"content": {"image/png": {}}}}}
    with pytest.raises(BuildFailed, match=r"'image' cannot be a tool\..*image/png only"):
        named({**paths, "/image": {"get": image}}, "image")


@pytest.mark.parametrize("text", ["a: &a {b: *a}", "a: *b", "a: !!binary aGk=", "? [a]\n: b", "a: .inf", "--- a\n--- b", "a: [", "<<: 1"])
def test_yaml_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(DocumentRefused):
        OpenApiDocument.read(text, is_json=False)


def test_yaml_is_read_as_its_library_reads_it() -> None:
    text = 'a: &x {b: 1, c: 2020-01-01, "1": yes}\nd: {<<: *x, b: 0x10}\ne: [~, 1.5, "<<", *x, !!str 5]\n'
    x: JsonValue = {"b": 1, "c": "2020-01-01", "1": True}
    assert parsed_yaml(text) == {"a": x, "d": {"b": 16, "c": "2020-01-01", "1": True}, "e": [None, 1.5, "<<", x, "5"]}


@pytest.fixture
def reader(launcher: Launcher, sandbox: Sandboxing, tmp_path: Path) -> DocumentReader:
    return DocumentReader(Executor(launcher, sandbox.sandbox), tmp_path / "work" / "document")


def large(size: int) -> str:
    """YAML of about this many bytes, mostly schemas."""
    fields = "".join(f"        field{number}: {{type: string, example: {'e' * 100}, description: what it is}}\n" for number in range(100))
    count = size // len(fields) + 1
    schemas = "".join(f"    S{number}:\n      type: object\n      properties:\n{fields}" for number in range(count))
    paths = "paths:\n  /x:\n    post:\n      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/S0'}}}}\n"
    return f"openapi: 3.0.0\n{paths}      responses: {{204: {{description: done}}}}\ncomponents:\n  schemas:\n{schemas}"


BOMB = "b0: &b0 [x, x]\n" + "".join(f"b{n + 1}: &b{n + 1} [{', '.join([f'*b{n}'] * 9)}]\n" for n in range(9))


@pytest.mark.parametrize("size", [4 << 20, pytest.param(20 << 20, marks=pytest.mark.long)])
async def test_a_large_document_is_read_in_the_sandbox(tmp_path: Path, reader: DocumentReader, size: int) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository/spec.yaml").write_text(large(size))
    found = inspect(Tree.read(tmp_path / "repository"))
    assert [one.details for one in found.findings] == [{"unread": True}]
    began = time.monotonic()
    (finding,) = (await read_documents(found, tmp_path / "repository", reader)).findings
    assert (finding.details["operations"], finding.path) == (1, "spec.yaml")
    assert time.monotonic() - began < 60
    read = (await reader.read(tmp_path / "repository", "spec.yaml")).served_at("https://example.com")
    schema = only(draft(read, Described("tool"), remote_sources(read, "tool"))).input_schema
    assert len(str(schema["properties"])) > 1_000
    assert not reader.work.exists()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("bomb.yaml", BOMB, "parts"),
        ("deep.json", '{"openapi": "3.0.0", "paths": ' + "[" * 300_000 + "]" * 300_000 + "}", "JSON"),
        ("many.json", '{"openapi": "3.0.0", "paths": {"/x": [' + "{}," * 1_200_000 + "{}]}}", "parts"),
        ("half.json", '{"openapi": "3.0.0"', "JSON"),
    ],
)  # fmt: skip
async def test_a_document_that_attacks_is_refused(tmp_path: Path, reader: DocumentReader, name: str, text: str, why: str) -> None:
    (tmp_path / "repository").mkdir()
    padding = f"\n# {'x' * (600 << 10)}" if name.endswith(".yaml") else " " * (600 << 10)
    (tmp_path / "repository" / name).write_text(text + padding)
    with pytest.raises(DocumentRefused, match=why):
        await reader.read(tmp_path / "repository", name)
    assert not reader.work.exists()


async def test_references_to_files_of_the_repository_are_followed_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    (folder / "parts").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text("type: string\nconst: not for them\n")
    (folder / "parts/link.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "parts/schemas.yaml").write_text(
        "Pet:\n  type: object\n  properties: {owner: {$ref: '#/Owner'}, tag: {$ref: '../spec.yaml#/components/schemas/Tag'}}\n"
        "Owner: {type: object, properties: {pet: {$ref: 'schemas.yaml#/Pet'}}}\n"
    )
    (folder / "parts/path.json").write_text(json.dumps({"post": {"requestBody": {"$ref": "body.yml"}, "responses": OK}}))
    (folder / "parts/body.yml").write_text("required: true\ncontent: {application/json: {schema: {$ref: 'schemas.yaml#/Pet'}}}\n")
    outside = (
        "../../secret.yaml",
        "parts/link.yaml",
        "/etc/passwd",
        "file:///etc/hosts.yaml",
        "http://169.254.169.254/x.yaml",
        "absent.yaml",
    )
    taking = "get:\n      responses: {{204: {{}}}}\n      parameters: [{{name: q, in: query, schema: {{$ref: '{}'}}}}]\n"
    bad = "".join(f"  /bad{number}:\n    {taking.format(one)}" for number, one in enumerate(outside))
    whole = f"openapi: 3.1.0\npaths:\n  /good: {{$ref: parts/path.json}}\n{bad}components: {{schemas: {{Tag: {{type: integer}}}}}}\n"
    (folder / "spec.yaml").write_text(whole)
    found = await read_documents(inspect(Tree.read(folder)), folder, DocumentReader(None, tmp_path / "work"))
    assert [one.details["operations"] for one in found.findings if one.path == "spec.yaml"] == [1]
    read = (await DocumentReader(None, tmp_path / "work").read(folder, "spec.yaml")).served_at("https://example.com")
    one = draft(read, Described("tool"), remote_sources(read, "tool"))
    properties = only(one).input_schema["properties"]
    assert isinstance(properties, dict)
    assert properties["tag"] == {"type": "integer"}
    assert len(one.left_out) == len(outside)
    assert "not for them" not in str(one)


@pytest.mark.parametrize(
    ("said", "names"), [({}, ["legs", "name"]), ({"required": True}, ["legs", "name"]), ({"required": False}, ["body"])]
)
def test_a_body_of_which_is_not_said_whether_it_is_needed_is_needed_where_a_field_of_it_is(
    said: dict[str, JsonValue], names: list[str]
) -> None:
    schema: JsonValue = {"type": "object", "properties": {"name": {"type": "string"}, "legs": {"type": "integer"}}, "required": ["name"]}
    for kind in ("application/json", "application/x-www-form-urlencoded"):
        body: JsonValue = {"content": {kind: {"schema": schema}}, **said}
        properties = only(drafted({"/x": {"post": {"requestBody": body, "responses": OK}}})).input_schema["properties"]
        assert isinstance(properties, dict)
        assert sorted(properties) == names
