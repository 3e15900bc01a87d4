"""A faulty tool file is named, with the place of the fault; the others are loaded."""

import json
import os
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.registry.archives import MAX_BYTES
from engine.registry.formats import tool_json
from engine.store.database import Database
from tests.registry.tool_files import METHOD, SCRIPT, ToolFiles, tool_file

EXAMPLE: JsonValue = {"input": {"n": "no number"}}
NUMBER: JsonValue = {"type": "object", "properties": {"n": {"type": "integer"}}}
HANDLER: dict[str, JsonValue] = {"type": "service-method", "serviceName": "ExternalScriptExecutionService", "methodName": "executeScript"}


@pytest.fixture
def files(database: Database, tmp_path: Path) -> ToolFiles:
    made = ToolFiles(database, tmp_path)
    made.write("good", tool_file("custom:good"))
    return made


def but(**more: JsonValue) -> dict[str, JsonValue]:
    return {**tool_file(), **more}


def without(name: str) -> dict[str, JsonValue]:
    return {key: value for key, value in tool_file().items() if key != name}


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("", "$"),
        ("[]", "$"),
        ("{'a': 1}", "$"),
        ('{"toolId": "custom:a",}', "$"),
        ('{"a": 1, "a": 2}', "$"),
        ('{"a": NaN}', "$"),
        ('{"a": 1e999}', "$"),
        ('{"a": "\\ud800"}', "$.a"),
        ("[" * 50_000 + "]" * 50_000, "$"),
        (without("toolId"), "$.toolId"),
        (without("displayName"), "$.displayName"),
        (without("description"), "$.description"),
        (without("version"), "$.version"),
        (without("handler"), "$.handler"),
        (but(toolId="Not An Id"), "$.toolId"),
        (but(version="1.0"), "$.version"),
        (but(version=1), "$.version"),
        (but(tags="a"), "$.tags"),
        (but(idempotent="yes"), "$.idempotent"),
        (but(handler={"type": "magic"}), "$.handler"),
        (but(handler={"type": "external-script", "language": "python"}), "$.handler.scriptPath"),
        (but(handler={**dict(SCRIPT), "language": "cobol"}), "$.handler.language"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (but(handler={"type": "service-method", "serviceName": "None", "methodName": "x"}), "$.handler.serviceName"),
        (but(handler={**dict(METHOD), "methodName": "destroy"}), "$.handler.methodName"),  # pyright: ignore[reportArgumentType, reportCallIssue]
        (but(parameters={"type": "string"}), "$.parameters.type"),
        (but(parameters={"type": "objekt"}), "$.parameters.type"),
        (but(parameters={"properties": {"p": {"pattern": "("}}}), "$.parameters.properties.p"),
        (but(output={"minimum": "x"}), "$.output.minimum"),
        (but(parameters={"$ref": "https://example.com/schema"}), "$.parameters"),
        (but(parameters=NUMBER, examples=[{"input": {"n": 1}}, EXAMPLE]), "$.examples[1].input.n"),
        (but(securityContext={"requiredCapabilities": ["teleport"]}), "$.securityContext.requiredCapabilities[0]"),
        (but(securityContext={"fileAcess": {}}), "$.securityContext.fileAcess"),
        (but(securityContext={"fileAccess": {"allowRead": ["./*", "../x"]}}), "$.securityContext.fileAccess.allowRead[1]"),
        (but(securityContext={"networkAccess": {"allowHosts": ["http://x"]}}), "$.securityContext.networkAccess.allowHosts[0]"),
        (but(dependencies=[{"toolId": "echo", "version": "new"}]), "$.dependencies[0].version"),
        (but(dependencies=[{"toolId": "custom:a"}]), "$.dependencies[0].toolId"),
        (but(timeoutSeconds=0), "$.timeoutSeconds"),
        (but(exampels=[]), "$.exampels"),
    ],
)
async def test_a_faulty_file_is_named_and_the_others_are_loaded(files: ToolFiles, content: dict[str, JsonValue] | str, field: str) -> None:
    files.write("bad", content)
    assert ("bad.tool.json", field) in await files.faults()
    assert await files.registry.list_ids() == ("custom:good", "echo")


async def test_a_file_whose_name_is_no_text_keeps_nobody_from_being_loaded(files: ToolFiles) -> None:
    files.write(os.fsdecode(b"bad\xff"), "{")
    files.write(os.fsdecode(b"fine\xff"), {**tool_file(), "toolId": "custom:fine"})
    assert ("bad\ufffd.tool.json", "$") in await files.faults()
    assert "custom:fine" in await files.registry.list_ids()


async def test_a_key_that_is_like_none_of_ours_is_kept(files: ToolFiles) -> None:
    files.write("a", {**tool_file(), "$schema": "https://example.com/tool.json", "x-owner": {"team": 7}})
    assert await files.run() == ()


@pytest.mark.parametrize(
    ("more", "field", "told"),
    [
        ({"inputSchema": NUMBER}, "$.inputSchema", "Did you mean 'parameters'?"),
        ({"input_schema": NUMBER}, "$.input_schema", "Did you mean 'parameters'?"),
        ({"returns": NUMBER}, "$.returns", "Did you mean 'output'?"),
        ({"handler": {**HANDLER, "timeoutSeconds": 5}}, "$.handler.timeoutSeconds", "Its place is $.timeoutSeconds."),
        ({"handler": {**HANDLER, "inputSchema": NUMBER}}, "$.handler.inputSchema", "Did you mean $.parameters?"),
        ({"limits": {"memoryBytes": 1}}, "$.limits", "Its place is $.securityContext.limits."),
        ({"securityContext": {"memoryBytes": 1}}, "$.securityContext.memoryBytes", "Its place is $.securityContext.limits.memoryBytes."),
    ],
)
def test_what_would_bound_a_tool_under_another_name_or_in_another_place_is_not_taken_in_silence(
    more: dict[str, JsonValue], field: str, told: str
) -> None:
    (fault,) = tool_json.read(json.dumps(tool_file() | more)).faults
    assert (fault.path, fault.reason.removeprefix(f"Nothing here is called {field.rpartition('.')[2]!r}. ")) == (field, told)


async def test_a_fault_names_line_and_column_as_the_file_has_them(files: ToolFiles) -> None:
    text = '{ // a "comment"\n  "toolId": "custom:a", // "x": {\n  "displayName": "http://a // b",\n  "version": 7\n}'
    path = files.write("bad", text)
    faults = {fault.field: fault.reason for fault in await files.run() if fault.file == path.as_posix()}
    assert "(line 4, column 14)" in faults["$.version"]
    assert "$.displayName" not in faults


@pytest.mark.parametrize(
    "path",
    ["../secret.py", "/etc/passwd", "a/../../secret.py", "nothing.py", "folder", "", "~/x.py", "C:\\x.py", "a\\b.py", "m\u202eain.py", "."],
)
async def test_a_script_that_leads_out_or_nowhere_is_refused(files: ToolFiles, path: str) -> None:
    files.write_script("secret.py")
    (files.folder / "a" / "folder").mkdir(parents=True)
    files.write("a/bad", but(handler={**dict(SCRIPT), "scriptPath": path}))  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert await files.faults() == {("a/bad.tool.json", "$.handler.scriptPath")}


async def test_a_script_behind_a_link_that_leads_out_is_refused(files: ToolFiles, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("print(1)", "utf-8")
    files.write("a/bad", but(handler=SCRIPT))
    (files.folder / "a" / "main.py").symlink_to(tmp_path / "outside.py")
    assert await files.faults() == {("a/bad.tool.json", "$.handler.scriptPath")}


DEEP = "/".join(["**", "*"] * 5)
NO_PATTERNS = ["no.py", "*.txt", "/etc/passwd", "~/x", "../x.py", "lib/../../x.py", "a\\b", "", "x" * 1025, "**x", ".", "./.", DEEP]


@pytest.mark.parametrize(
    ("patterns", "field"),
    [
        *(
            (["x.py", pattern], "$.handler.files[1]")
            for pattern in ("/x", "~/x", "../x.py", "a/../x", "a\\b", "a\nb", "", ".", "./.", "x" * 1025)
        ),
        ([], "$.handler.files"),
        (["x"] * 21, "$.handler.files"),
    ],
)
def test_a_pattern_that_can_mean_no_file_is_a_fault_wherever_the_file_is_read(patterns: list[JsonValue], field: str) -> None:
    (fault,) = tool_json.read(json.dumps(but(handler={**SCRIPT, "files": patterns}))).faults
    assert fault.path == field


def test_twenty_patterns_of_1024_characters_are_taken() -> None:
    patterns: list[JsonValue] = ["x" * 1024] * 20
    assert tool_json.read(json.dumps(but(handler={**SCRIPT, "files": patterns}))).faults == ()


@pytest.mark.parametrize("pattern", NO_PATTERNS)
async def test_a_pattern_that_names_nothing_or_leads_out_of_the_folder_is_refused(files: ToolFiles, pattern: str) -> None:
    files.write_script("main.py")
    files.write_script("helper.py")
    (files.data / "x.py").write_text("print(1)", "utf-8")
    files.write("bad", but(handler={**SCRIPT, "files": ["helper.py", pattern]}))
    assert await files.faults() == {("bad.tool.json", "$.handler.files[1]")}


async def test_a_pattern_that_means_a_link_out_of_the_folder_is_refused(files: ToolFiles, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s", "utf-8")
    files.write_script("a/main.py")
    (files.folder / "a" / "data.txt").symlink_to(tmp_path / "secret")
    files.write("a/bad", but(handler={**SCRIPT, "files": ["*.txt"]}))
    assert await files.faults() == {("a/bad.tool.json", "$.handler.files[0]")}


@pytest.mark.parametrize(("named", "field"), [({"files": ["large"]}, "$.handler.files"), ({}, "$.handler.scriptPath")])
async def test_more_than_is_kept_is_a_fault_of_what_names_it(files: ToolFiles, named: dict[str, JsonValue], field: str) -> None:
    os.truncate(files.write_script("a/large"), MAX_BYTES)
    files.write_script("a/main.py")
    files.write("a/bad", but(handler={**SCRIPT, **named}))
    assert await files.faults() == {("a/bad.tool.json", field)}


async def test_a_pattern_that_means_the_script_of_another_tool_is_refused(files: ToolFiles) -> None:
    files.write_script("main.py")
    files.write_script("other.py")
    files.write("bad", but(handler={**SCRIPT, "files": ["*.py"]}))
    files.write("other", tool_file("custom:other", handler={**SCRIPT, "scriptPath": "other.py"}))
    (fault,) = await files.run()
    assert (fault.field, fault.reason.partition(" (line")[0]) == (
        "$.handler.files[0]",
        "'other.py' is the script of 'custom:other'. Name the files that this script needs.",
    )


async def test_tools_that_depend_on_each_other_in_a_circle_are_refused_and_who_depends_on_them_is_not(files: ToolFiles) -> None:
    needs = {"a": "b", "b": "c", "c": "a", "d": "a"}
    for one, other in needs.items():
        files.write(one, tool_file(f"custom:{one}", dependencies=[{"toolId": f"custom:{other}", "version": "^1.0"}]))
    assert await files.faults() == {(f"{one}.tool.json", "$.dependencies") for one in "abc"}
    assert await files.registry.list_ids() == ("custom:d", "custom:good", "echo")


async def test_a_range_that_leaves_the_circle_is_none(files: ToolFiles) -> None:
    files.write("a", tool_file("custom:a", dependencies=[{"toolId": "custom:b", "version": "^1.0"}]))
    files.write("b1", tool_file("custom:b"))
    files.write("b2", tool_file("custom:b", "2.0.0", dependencies=[{"toolId": "custom:a"}]))
    assert await files.faults() == set()


async def test_a_circle_by_way_of_the_registry_is_found(files: ToolFiles) -> None:
    files.write_registry({"tool_id": "r", "name": "R", "dependencies": [{"tool_id": "custom:a"}]})
    files.write("a", tool_file("custom:a", dependencies=[{"toolId": "r"}]))
    assert ("a.tool.json", "$.dependencies") in await files.faults()


async def test_a_link_to_itself_and_a_folder_by_that_name_are_faults(files: ToolFiles) -> None:
    (files.folder / "loop.tool.json").symlink_to("loop.tool.json")
    (files.folder / "dir.tool.json").mkdir()
    assert ("loop.tool.json", "$") in await files.faults()


async def test_a_script_that_is_a_link_in_a_circle_is_a_fault(files: ToolFiles) -> None:
    files.write("a/a", tool_file(handler=SCRIPT))
    (files.folder / "a" / "main.py").symlink_to("main.py")
    assert await files.faults() == {("a/a.tool.json", "$.handler.scriptPath")}


async def test_content_that_is_not_in_the_store_is_said_and_the_tool_is_kept_as_another_host_may_have_it(files: ToolFiles) -> None:
    files.write("a", tool_file(handler={**dict(SCRIPT), "content": f"file_{'0' * 32}"}))  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert await files.faults() == {("a.tool.json", "$.handler.content")}
    assert await files.versions() == ("1.0.0", {"1.0.0"})


async def test_a_file_of_another_encoding_and_one_that_is_too_large_are_faults(files: ToolFiles) -> None:
    (files.folder / "latin.tool.json").write_bytes(json.dumps(tool_file()).encode("utf-16"))
    files.write("large", json.dumps(but(description="x" * 1_100_000)))
    assert {("latin.tool.json", "$"), ("large.tool.json", "$")} <= await files.faults()
