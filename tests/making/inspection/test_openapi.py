"""How OpenAPI documents are read."""

import json
import time
from collections.abc import Mapping
from contextlib import nullcontext

import pytest
from pydantic import JsonValue

from engine.making.gate.keys import keys_of_others, wants_key
from engine.making.json_values import part
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.sources import docker_sources, local_sources, remote_sources
from engine.making.openapi.tools import BuildFailed, Described, Drafted, draft
from engine.runtimes.failures import NotSent
from engine.runtimes.http.request_parts import Places, request_parts
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, HttpSource, LocalSource, McpSource, RemoteSource
from toolagent.validation.schemas import issues_of
from toolagent_service.calls.shared_processes import process_key

SERVER = "https://api.example.com/v1"
OK: JsonValue = {"200": {"description": "", "content": {"application/json": {"schema": {"type": "object"}}}}}


def document(paths: Mapping[str, JsonValue], version: str = "3.0.3", **more: JsonValue) -> OpenApiDocument:
    whole: JsonValue = {"openapi": version, "info": {"title": "T"}, "servers": [{"url": SERVER}], "paths": dict(paths), **more}
    return OpenApiDocument.read(json.dumps(whole), is_json=True)


def drafted(paths: Mapping[str, JsonValue], version: str = "3.0.3", **more: JsonValue) -> Drafted:
    read = document(paths, version, **more)
    return draft(read, Described("tool", "what it is for"), remote_sources(read, "tool"))


def posting(schema: JsonValue, *, required: bool = True) -> dict[str, JsonValue]:
    body: JsonValue = {"required": required, "content": {"application/json": {"schema": schema}}}
    return {"/x": {"post": {"requestBody": body, "responses": OK}}}


def test_half_a_character_in_a_document_does_not_get_into_the_tool() -> None:
    manifest = only(drafted(posting({"type": "object", "properties": {"\ud800": {"description": "a \ud83d"}}}), title="\udc00"))
    assert manifest.input_schema["properties"] == {"\ufffd": {"description": "a \ufffd"}}
    assert manifest.model_dump_json()


def only(one: Drafted) -> ToolManifest:
    (entry,) = one.candidate.entries
    return entry.manifest


def input_of(schema: JsonValue, version: str = "3.0.3", /, **schemas: JsonValue) -> JsonSchema:
    return only(drafted(posting(schema), version, components={"schemas": schemas})).input_schema


TEXTS = ("text/html; charset=utf-8", "application/xml", "application/RSS+XML")
OTHERS = ("text/event-stream", "application/yaml", "image/png")


def test_a_text_is_an_answer_and_may_be_json() -> None:
    contents: list[dict[str, JsonValue]] = [{kind: {}} for kind in ("application/json", *TEXTS, *OTHERS)]
    gets: list[JsonValue] = [{"get": {"responses": {"200": {"description": "", "content": one}}}} for one in contents]
    made = drafted({f"/{place}": one for place, one in enumerate(gets)})
    assert [one.reason for one in made.left_out] == [f"It answers with {kind} only, neither JSON nor text." for kind in OTHERS]
    sources = [one.sources[0] for one in made.candidate.entries]
    assert [isinstance(one, HttpSource) and one.gives_text for one in sources] == [False, *(True for _ in TEXTS)]
    schema = made.candidate.entries[1].manifest.output_schema
    answers: list[JsonValue] = ["<p>", {"a": 1}, [1], 3]
    assert [not issues_of(schema, answer) for answer in answers] == [True, True, True, False]


def test_a_single_operation_takes_the_name_of_the_task() -> None:
    one = drafted({"/x": {"get": {"summary": "Look", "description": "Looks it up.", "responses": OK}}})
    assert (only(one).tool_id, only(one).name) == ("tool", "Look")
    assert only(one).description == "what it is for\n\nLook\n\nLooks it up."
    assert one.candidate.group is None


def test_names_are_unique_stable_and_fit_for_ids() -> None:
    paths: dict[str, JsonValue] = {
        "/a": {"get": {"operationId": "getPetById", "responses": OK}, "post": {"operationId": "HTTPPost", "responses": OK}},
        "/b": {"get": {"operationId": "same", "responses": OK}, "put": {"operationId": "Same", "responses": OK}},
        "/c/{id}": {"get": {"responses": OK}},
        "/d-e": {"get": {"responses": OK}},
        "/d_e": {"get": {"responses": OK}},
        "/长": {"get": {"operationId": "查询", "responses": OK}},
        "/f": {"get": {"operationId": "x" * 300, "responses": OK}},
        "/g": {"get": {"operationId": "summarize_g_get", "responses": OK}},
    }
    names = [entry.manifest.tool_id for entry in drafted(paths).candidate.entries]
    assert names[:5] == ["tool_get_pet_by_id", "tool_http_post", "tool_get_b", "tool_put_b", "tool_get_c_id"]
    assert names[-1] == "tool_summarize"
    assert len(set(names)) == len(names) == 10
    assert all(ToolManifest(tool_id=name, name="x").tool_id == name for name in names), TOOL_ID_PATTERN
    alone = {name: path for name, path in paths.items() if name != "/长"}
    assert [entry.manifest.tool_id for entry in drafted(alone).candidate.entries] == [name for name in names if name != names[7]]


def test_schemas_of_3_0_become_json_schemas() -> None:
    schema: JsonValue = {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "string", "nullable": True, "enum": ["x"], "example": "x"},
            "b": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
            "c": {"$ref": "#/components/schemas/C", "description": "counts for nothing in 3.0"},
        },
    }
    assert input_of(schema, C={"type": "integer", "x-own": 1}) == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "enum": ["x", None]},
            "b": {"type": "number", "exclusiveMinimum": 0, "maximum": 9},
            "c": {"type": "integer"},
        },
        "additionalProperties": False,
        "required": ["a"],
    }


def test_circular_references_stay_small() -> None:
    node: JsonValue = {"type": "object", "properties": {name: {"$ref": "#/components/schemas/N"} for name in "abcdefgh"}}
    assert len(json.dumps(input_of({"$ref": "#/components/schemas/N"}, N=node))) < 100_000


def test_references_that_double_at_each_step_are_refused_and_not_written_out() -> None:
    doubling: dict[str, JsonValue] = {
        f"S{n}": {"type": "object", "properties": {name: {"$ref": f"#/components/schemas/S{n + 1}"} for name in "ab"}} for n in range(40)
    }
    with pytest.raises(BuildFailed, match="POST /x"):
        input_of({"$ref": "#/components/schemas/S0"}, "3.1.0", **doubling, S40={"type": "string"})


def test_a_reference_elsewhere_leaves_its_operation_out() -> None:
    paths: dict[str, JsonValue] = {**posting({"$ref": "other.yaml#/X"}), "/y": {"get": {"responses": OK}}}
    one = drafted(paths)
    assert [left.operation for left in one.left_out] == ["POST /x"]
    assert only(one).name == "GET /y"


@pytest.mark.parametrize("path", ["/x?key=secret:OTHER_API_KEY", "/x?", "/x?#a"])
def test_a_path_writes_no_query_in_which_it_could_name_our_secrets(path: str) -> None:
    one = drafted({path: {"get": {"responses": OK}}, "/y": {"get": {"responses": OK}}})
    assert [left.operation for left in one.left_out] == [f"GET {path}"]
    assert only(one).name == "GET /y"


def test_operations_that_only_a_fragment_tells_apart_are_tools_of_one_path() -> None:
    one = drafted({f"/x/{{id}}#{name}": {"get": {"responses": OK}} for name in ("a", "b{c}")})
    sources = [source for entry in one.candidate.entries for source in entry.sources if isinstance(source, RemoteSource)]
    assert [source.endpoint_path for source in sources] == ["/x/{id}", "/x/{id}"]
    assert [entry.manifest.input_schema["required"] for entry in one.candidate.entries] == [["id"], ["id"]]
    assert not one.left_out


def test_an_operation_may_be_a_reference() -> None:
    operation: JsonValue = {"operationId": "pay", "parameters": [{"name": "n", "in": "query", "required": True}], "responses": OK}
    paths: dict[str, JsonValue] = {"/x": {"get": {"$ref": "#/components/x-get"}, "put": {"$ref": "#/components/none"}}}
    one = drafted(paths, components={"x-get": operation})
    assert (only(one).name, only(one).input_schema["required"]) == ("pay", ["n"])
    assert [left.operation for left in one.left_out] == ["PUT /x"]


def test_what_only_answers_have_is_not_asked_of_a_caller_and_the_reverse() -> None:
    whole: JsonValue = {
        "type": "object",
        "required": ["id", "name", "pin"],
        "properties": {"id": {"$ref": "#/components/schemas/Id"}, "name": {}, "pin": {"writeOnly": True}},
    }
    answer: JsonValue = {"200": {"content": {"application/json": {"schema": whole}}}}
    body: JsonValue = {"required": True, "content": {"application/json": {"schema": whole}}}
    made = only(drafted({"/x": {"post": {"requestBody": body, "responses": answer}}}, components={"schemas": {"Id": {"readOnly": True}}}))
    assert (made.input_schema["required"], made.output_schema["required"]) == (["name", "pin"], ["id", "name"])


@pytest.mark.parametrize(("version", "required"), [("3.0.3", ["id", "name"]), ("3.1.0", ["name"])])
def test_a_keyword_beside_a_reference_counts_in_version_3_1(version: str, required: list[str]) -> None:
    beside: JsonValue = {"$ref": "#/components/schemas/Id", "readOnly": True}
    found = input_of(
        {"type": "object", "required": ["id", "name"], "properties": {"id": beside, "name": {}}}, version, Id={"type": "string"}
    )
    assert part(part(found["properties"]).get("body", found))["required"] == required


@pytest.mark.parametrize(
    ("kinds", "sent"),
    [
        (["application/json-patch+json; charset=utf-8"], "application/json-patch+json"),
        (["application/*+json"], ""),
        (["application/x+json", "application/json"], ""),
        (["+json"], ""),
        (["application/vnd.a!b+json"], ""),
    ],
)
def test_json_is_sent_as_its_own_type_only_where_no_other_is_offered(kinds: list[str], sent: str) -> None:
    content: JsonValue = {kind: {"schema": {"type": "object", "properties": {kind: {}}}} for kind in kinds}
    made = drafted({"/x": {"post": {"requestBody": {"required": True, "content": content}, "responses": OK}}})
    (source,) = made.candidate.entries[0].sources
    assert isinstance(source, RemoteSource)
    assert (source.body_media_type, list(part(only(made).input_schema["properties"]))) == (sent, kinds[-1:])


def with_file(field: JsonValue, **schemas: JsonValue) -> JsonValue:
    content: JsonValue = {"multipart/form-data": {"schema": {"type": "object", "properties": {"f": field}}}}
    operation: JsonValue = {"requestBody": {"required": True, "content": content}, "responses": OK}
    made = only(drafted({"/x": {"post": operation}}, "3.1.0", components={"schemas": schemas}))
    return part(made.input_schema["properties"])["f"]


def test_a_file_and_null_may_be_references() -> None:
    schemas: dict[str, JsonValue] = {"File": {"type": "string", "format": "binary"}, "Null": {"type": "null"}}
    field: JsonValue = {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in schemas]}
    assert with_file(field, **schemas) == {"anyOf": [{"type": "string", "format": "file-path"}, {"type": "null"}]}


def test_choices_of_files_that_refer_to_choices_cost_no_long_time() -> None:
    binary: JsonValue = {"type": "string", "format": "binary"}
    b: list[JsonValue] = [{"$ref": "#/components/schemas/B"} for _ in range(110)]
    c: list[JsonValue] = [{"$ref": "#/components/schemas/C"} for _ in range(110)]
    schemas: dict[str, JsonValue] = {
        "B": {"anyOf": c},
        "C": {"anyOf": [binary for _ in range(110)]},
        "D": {"anyOf": [binary, {"$ref": "#/components/schemas/D", "type": "null"}]},
    }
    begun = time.process_time()
    with pytest.raises(BuildFailed, match="ways"):
        with_file({"anyOf": b}, **schemas)
    with_file({"$ref": "#/components/schemas/D"}, **schemas)
    assert time.process_time() - begun < 1


def test_a_value_that_fits_several_branches_is_taken_where_a_field_tells_them_apart() -> None:
    branches: JsonValue = [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]
    kind: dict[str, JsonValue] = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
    found = input_of({"oneOf": branches, "discriminator": {"propertyName": "kind"}}, Cat=kind, Dog=kind)
    assert not issues_of(found, {"body": {"kind": "cat"}})
    assert issues_of(found, {"body": {}})


def test_keywords_of_other_versions_do_not_cost_an_operation() -> None:
    odd: JsonValue = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "$recursiveAnchor": True, "nullable": True}
    properties = input_of({"type": "object", "required": ["a", "a"], "properties": {"a": odd}}, "3.1.0")["properties"]
    assert properties == {"a": {"type": ["number", "null"], "exclusiveMinimum": 0}}


@pytest.mark.parametrize(
    "operation",
    [
        {"responses": {"200": {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}},
        {"requestBody": {"required": True, "content": {"image/*": {}}}, "responses": OK},
        {"responses": {"200": {"content": {"image/png": {}}}}},
        {"parameters": [{"name": "session", "in": "cookie", "required": True}], "responses": OK},
        {"parameters": [{"name": "f", "in": "query", "required": True, "style": "matrix"}], "responses": OK},
        {"requestBody": {"$ref": "#/components/requestBodies/None"}, "responses": OK},
    ],
)
def test_an_operation_that_cannot_be_called_is_left_out(operation: JsonValue) -> None:
    with pytest.raises(BuildFailed, match="POST /x"):
        drafted({"/x": {"post": operation}})


def test_an_optional_body_that_is_not_sent_and_optional_parameters_are_only_not_sent() -> None:
    operation: JsonValue = {
        "requestBody": {"content": {"image/*": {}}},
        "parameters": [{"name": "s", "in": "cookie"}, {"name": "Authorization", "in": "header", "required": True}],
        "responses": {"204": {"description": "done"}},
    }
    manifest = only(drafted({"/x": {"post": operation}}))
    assert (manifest.input_schema["properties"], manifest.output_schema) == ({}, {})


def test_the_output_is_what_all_answers_of_success_are() -> None:
    def answer(schema: JsonValue) -> JsonValue:
        return {"content": {"application/problem+json": {"schema": schema}}}

    def output(**answers: JsonValue) -> JsonSchema:
        return only(drafted({"/x": {"get": {"responses": dict(answers)}}})).output_schema

    number: JsonValue = {"type": "number"}
    assert output(**{"200": answer(number), "404": answer({"type": "string"})}) == number
    assert output(**{"200": answer(number), "201": answer({"type": "string"})}) == {"anyOf": [number, {"type": "string"}]}
    assert output(**{"200": answer(number), "204": {}}) == {}


def test_where_a_tool_runs_is_said_by_its_source() -> None:
    paths: dict[str, JsonValue] = {"/health": {"get": {"responses": OK}}, "/x/{id}": {"post": {"responses": OK}}}
    read = document(paths)
    (remote,) = draft(read, Described("tool"), remote_sources(read, "tool")).candidate.entries
    (local,) = draft(read, Described("tool"), local_sources(read, "tools/local/tool")).candidate.entries
    (docker,) = draft(read, Described("tool"), docker_sources(read, "tools/docker/tool", "Dockerfile", 80)).candidate.entries
    assert remote.sources == (RemoteSource(remote_url=SERVER, endpoint_path="/x/{id}", body_encoding="none", only_public=True),)
    called = {"endpoint_path": "/v1/x/{id}", "body_encoding": "none", "health_path": "/v1/health"}
    assert local.sources == (LocalSource(host_dir="tools/local/tool").model_copy(update=called),)
    built = DockerSource(host_dir="tools/docker/tool", dockerfile="Dockerfile", internal_port=80)
    assert docker.sources == (built.model_copy(update=called),)
    assert (remote.manifest.backend_runtime, docker.manifest.backend_runtime) == ("remote", "docker")


def test_what_a_header_cannot_hold_its_schema_does_not_allow() -> None:
    header: JsonValue = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "kg"}
    parameters: JsonValue = [{"name": "X-Unit", "in": "header", "schema": header}]
    schema = only(drafted({"/x": {"get": {"parameters": parameters, "responses": OK}}})).input_schema
    taken = {text: not issues_of(schema, {"x_unit": text}) for text in ("", "kg", "a b", " a", "a ", "a\n", "\x80", "\x7f", "é")}
    assert [text for text, fits in taken.items() if fits] == ["", "kg", "a b"]
    for text, fits in taken.items():
        with nullcontext() if fits else pytest.raises(NotSent):
            request_parts("GET", "/x", {"x_unit": text}, Places(headers={"x_unit": "X-Unit"}))


def test_a_key_is_shown_to_nobody_in_the_open() -> None:
    paths: dict[str, JsonValue] = {"/x": {"get": {"responses": OK, "security": [{"k": []}]}}}
    schemes: JsonValue = {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}}
    for url, is_taken in (("https://example.com", True), ("http://127.0.0.1:8000", True), ("http://example.com", False)):
        read = document(paths, servers=[{"url": url}], components=schemes)
        if is_taken:
            assert "secret:SHOP_API_KEY" in draft(read, Described("shop"), remote_sources(read, "shop")).candidate.model_dump_json()
        else:
            with pytest.raises(BuildFailed, match="http://"):
                draft(read, Described("shop"), remote_sources(read, "shop"))


def test_a_key_that_was_set_for_another_server_is_not_shown_to_this_one() -> None:
    def shop(tool_id: str, url: str, secret: str = "SHOP_API_KEY") -> ToolEntry:  # noqa: S107 - a name
        source = RemoteSource(remote_url=url, remote_api_key=f"secret:{secret}")
        return ToolEntry(manifest=ToolManifest(tool_id=tool_id, name=tool_id), sources=(source,))

    made = [shop("shop", "https://new.example.com/v1")]
    assert wants_key(made)
    assert not wants_key([made[0].model_copy(update={"sources": (LocalSource(host_dir="x"),)})])
    others = [shop("other", "https://old.example.com"), shop("third", "https://third.example.com", "ANOTHER_KEY")]
    assert "'other' shows to https://old.example.com" in keys_of_others(made, others)
    assert keys_of_others(made, [shop("same", "https://new.example.com/v2"), *others[1:]]) == ""
    server = McpSource(tool_name="act", url="https://mcp.example.com/mcp", remote_api_key="secret:SHOP_API_KEY")
    agent = ToolEntry(manifest=ToolManifest(tool_id="agent", name="Agent"), sources=(server,))
    assert "'agent' shows to https://mcp.example.com" in keys_of_others(made, [agent])


def test_tools_of_one_service_share_its_process_if_it_is_ours() -> None:
    read = document({"/x": {"get": {"responses": OK}, "post": {"responses": OK}}})
    ours = [
        *draft(read, Described("shop"), local_sources(read, "tools/local/shop")).candidate.entries,
        *draft(read, Described("shop"), docker_sources(read, "tools/docker/shop", "Dockerfile", 80)).candidate.entries,
    ]
    assert [entry.sources[0].shared_process for entry in ours] == ["shop"] * 4
    assert len({process_key(entry.manifest, entry.sources[0]) for entry in ours}) == 2
    theirs = draft(read, Described("shop"), remote_sources(read, "shop")).candidate.entries
    assert [entry.sources[0].shared_process for entry in theirs] == [None, None]


def test_a_document_without_an_absolute_server_is_not_remote() -> None:
    read = document({"/x": {"get": {"responses": OK}}}, servers=[{"url": "/api"}])
    with pytest.raises(DocumentRefused, match="absolute"):
        remote_sources(read, "tool")
    assert read.base_path == "/api"


def test_variables_of_a_server_are_filled_and_a_password_is_not_taken() -> None:
    url: JsonValue = {"url": "https://{region}.example.com/{v}", "variables": {"region": {"default": "eu"}, "v": {"default": "v2"}}}
    assert document({}, servers=[url]).server_url == "https://eu.example.com/v2"
    assert document({}, servers=[{"url": "https://user:password@example.com"}]).server_url == ""


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"swagger": "2.0"}', '{"openapi": "4.0.0", "paths": {}}', '{"openapi": "3.1.0"}', '{"openapi": "3.0.0", "paths": []}', "{"],
)
def test_what_is_no_document_is_refused(text: str) -> None:
    for is_json in (True, False):
        with pytest.raises(DocumentRefused):
            OpenApiDocument.read(text, is_json=is_json)


def test_yaml_says_the_same_as_json() -> None:
    text = "openapi: 3.1.0\npaths:\n  /x:\n    get:\n      operationId: on\n      responses: {200: {description: 2020-01-01}}\n"
    paths: dict[str, JsonValue] = {"/x": {"get": {"operationId": True, "responses": {"200": {"description": "2020-01-01"}}}}}
    assert OpenApiDocument.read(text, is_json=False).root["paths"] == paths
