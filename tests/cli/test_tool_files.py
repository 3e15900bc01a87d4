"""Tool files on the command line: written, checked and tried."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue
from typer.testing import Result

from tests.machine import lacking
from tests.registry.tool_files import SCRIPT, ToolFiles, tool_file

if TYPE_CHECKING:
    from engine.store.database import Database
    from tests.cli.conftest import Service

Invoke = Callable[..., Result]
METHOD: JsonValue = {"type": "service-method", "serviceName": "S", "methodName": "m"}
RUNNERS = {"python": [sys.executable, "test_main.py"], "nodejs": ["node", "--test"], "bun": ["bun", "test"]}


def document(tool_id: str = "custom:a", more: dict[str, JsonValue] | None = None) -> str:
    return json.dumps({"toolId": tool_id, "displayName": "A", "description": "A.", "version": "1.0.0", "handler": METHOD, **(more or {})})


@pytest.mark.parametrize("language", RUNNERS)
def test_a_new_tool_is_valid_and_its_test_runs(toolagent: Invoke, tmp_path: Path, language: str) -> None:
    made = toolagent("new-tool", "acme:my-tool", "--language", language, "--dir", str(tmp_path))
    assert made.exit_code == 0, made.stderr
    folder = tmp_path / "my-tool"
    assert {str(path) for path in folder.iterdir()} == set(made.stdout.split())
    written = json.loads((folder / "my-tool.tool.json").read_text("utf-8"))
    assert written["toolId"] == "acme:my-tool"
    assert toolagent("validate", str(tmp_path)).exit_code == 0
    program, *arguments = RUNNERS[language]
    command = [shutil.which(program) or installed(program, tmp_path / "npm"), *arguments]
    ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    script = folder / written["handler"]["scriptPath"]
    script.write_text(script.read_text("utf-8").replace("length:", "size:").replace('"length":', '"size":'), "utf-8")
    assert subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode != 0


def installed(program: str, folder: Path) -> str:
    """A package installed from npm, for this test alone."""
    npm = shutil.which("npm")
    if npm is None:
        lacking(f"There is neither {program} nor npm on this machine.")
    subprocess.run([npm, "install", "--silent", "--prefix", str(folder), program], check=True, capture_output=True)
    return str(folder / "node_modules" / ".bin" / program)


def test_a_new_tool_overwrites_nothing(toolagent: Invoke, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert toolagent("new-tool", "mine", "--dir", str(tmp_path)).exit_code == 2
    assert [*(tmp_path / "mine").iterdir()] == []
    wrong = toolagent("new-tool", "Not An Id", "--dir", str(tmp_path))
    assert (wrong.exit_code, "'not-an-id' would do" in wrong.stderr) == (2, True)
    for name in ("x" * 200, "X" * 122, "123", "_"):
        wrong = toolagent("new-tool", name, "--dir", str(tmp_path))
        assert (wrong.exit_code, "would do" in wrong.stderr) == (2, False)
    assert "at most with its namespace" in " ".join(wrong.stderr.split())


def test_every_fault_is_named_with_its_line_and_the_exit_code_says_so(toolagent: Invoke, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tool.json"
    bad.write_text('{\n  "toolId": "custom:a", // an id\n  "displayName": 7\n}', "utf-8")
    (tmp_path / "good.tool.json").write_text(document(), "utf-8")
    result = toolagent("validate", str(tmp_path))
    assert result.exit_code == 1
    assert {line.split(": ")[0] + line.split(": ")[1] for line in result.stdout.splitlines()} == {
        f"{bad}:3:18$.displayName",
        f"{bad}:1:1$.description",
        f"{bad}:1:1$.version",
        f"{bad}:1:1$.handler",
    }
    assert "1 of 2 files" in result.stderr
    listed = json.loads(toolagent("validate", str(bad), "--json").stdout)
    assert {(one["line"], one["field"]) for one in listed} == {
        (3, "$.displayName"),
        *((1, f"$.{name}") for name in ("description", "version", "handler")),
    }


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"parameters": {"properties": {"p": {"pattern": "("}}}}, "$.parameters.properties.p"),
        ({"parameters": {"properties": {"n": {"type": "integer"}}}, "examples": [{"input": {"n": "x"}}]}, "$.examples[0].input.n"),
        ({"securityContext": {"requiredCapabilities": ["teleport"]}}, "$.securityContext.requiredCapabilities[0]"),
        ({"dependencies": [{"toolId": "b", "version": "new"}]}, "$.dependencies[0].version"),
        ({"handler": {"type": "external-script", "scriptPath": "no.py", "language": "python"}}, "$.handler.scriptPath"),
    ],
)
def test_what_the_service_would_refuse_is_refused_offline(
    toolagent: Invoke, tmp_path: Path, more: dict[str, JsonValue], field: str
) -> None:
    (tmp_path / "a.tool.json").write_text(document(more=more), "utf-8")
    result = toolagent("validate", str(tmp_path), "--json")
    assert (result.exit_code, [one["field"] for one in json.loads(result.stdout)]) == (1, [field])


async def test_service_and_command_line_refuse_the_same_with_the_same_words(
    toolagent: Invoke, database: "Database", tmp_path: Path
) -> None:
    files = ToolFiles(database, tmp_path)
    (tmp_path / "outside.py").write_text("print(1)", "utf-8")
    for name in ("link", "round", "folder", "none"):
        files.write(f"{name}/a", tool_file(f"custom:{name}", handler=SCRIPT))
    (files.folder / "link" / "main.py").symlink_to(tmp_path / "outside.py")
    (files.folder / "round" / "main.py").symlink_to("main.py")
    (files.folder / "folder" / "main.py").mkdir()
    files.write_script("main.py")
    files.write("among", tool_file("custom:among", handler={**SCRIPT, "files": ["*.py"]}))
    files.write_script("own.py")
    files.write("own", tool_file("custom:own", handler={**SCRIPT, "scriptPath": "own.py", "files": ["no*"]}))
    files.write("other", tool_file("custom:other", handler={**SCRIPT, "scriptPath": "own.py"}))
    files.write("large", tool_file("custom:large", description="x" * 2_000_000))
    (files.folder / "latin.tool.json").write_bytes(json.dumps(tool_file()).encode("utf-16"))
    choice: JsonValue = {"properties": {"n": {"enum": ["y" * 600]}}}
    files.write("long", tool_file("custom:long", parameters=choice, examples=[{"input": {"n": "x" * 600}}]))
    for one, other in (("b", "c"), ("c", "b")):
        files.write(one, tool_file(f"custom:{one}", dependencies=[{"toolId": f"custom:{other}"}]))
    for name in ("d", "e"):
        files.write(name, tool_file("custom:d"))
    yaml = "name: http_request\nparameters:\n  - name: url\n    type: string\nentry:\n  type: builtin\n  handler: http_request\n"
    files.write_script("http_request.yaml", yaml)
    files.write_script("settings.yml", "name: x\nparameters: []\nmore:\n  entry: 1\n")
    service = {(fault.file, fault.field, fault.reason.rpartition(" (line ")[0] or fault.reason) for fault in await files.run()}
    options = ("--script-root", str(files.scripts))
    listed = json.loads(toolagent("validate", str(files.folder), *options, "--json").stdout)
    assert {(one["file"], one["field"], one["reason"]) for one in listed} == service
    assert len(service) == 13
    alone = json.loads(toolagent("validate", str(files.folder / "http_request.yaml"), "--json").stdout)
    assert [(one["file"], one["field"], one["reason"]) for one in alone] == [one for one in service if one[0].endswith(".yaml")]


async def test_what_the_service_loads_from_a_data_folder_elsewhere_passes(toolagent: Invoke, database: "Database", tmp_path: Path) -> None:
    files = ToolFiles(database, tmp_path)
    for version in ("1.0.0", "1.1.0"):
        files.write(f"mine/v{version}", tool_file("custom:mine", version, handler=SCRIPT))
    files.write_script("mine/main.py")
    (files.scripts / "far").mkdir()
    (files.scripts / "far" / "main.py").write_text("print(1)", "utf-8")
    files.write("far", tool_file("custom:far", handler={**SCRIPT, "scriptPath": "far/main.py"}))
    assert await files.run() == ()
    for target in (files.data, files.folder, files.folder / "mine", files.folder / "far.tool.json"):
        assert toolagent("validate", str(target)).exit_code == 0, target


def test_the_folder_of_one_tool_with_several_versions_passes_wherever_it_lies(toolagent: Invoke, tmp_path: Path) -> None:
    handler: JsonValue = {"type": "external-script", "scriptPath": "main.py", "language": "python"}
    for version in ("1.0.0", "1.1.0"):
        (tmp_path / f"v{version}.tool.json").write_text(document(more={"handler": handler, "version": version}), "utf-8")
    (tmp_path / "main.py").write_text("print(1)", "utf-8")
    assert toolagent("validate", str(tmp_path)).exit_code == 0


def test_doubles_and_circles_among_files_are_found(toolagent: Invoke, tmp_path: Path) -> None:
    (tmp_path / "a.tool.json").write_text(document("custom:a", {"dependencies": [{"toolId": "custom:b"}]}), "utf-8")
    (tmp_path / "b.tool.json").write_text(document("custom:b", {"dependencies": [{"toolId": "custom:a"}]}), "utf-8")
    (tmp_path / "c.tool.json").write_text(document("custom:b"), "utf-8")
    listed = json.loads(toolagent("validate", str(tmp_path), "--json").stdout)
    assert {(Path(one["file"]).name[0], one["field"]) for one in listed} == {
        ("a", "$.dependencies"),
        ("b", "$.dependencies"),
        ("c", "$.version"),
    }


def test_a_file_that_is_too_large_for_the_service_is_a_fault_and_one_with_two_names_is_none(toolagent: Invoke, tmp_path: Path) -> None:
    (tmp_path / "large.tool.json").write_text(document("custom:large", {"x-more": "x" * 2_000_000}), "utf-8")
    (tmp_path / "a.tool.json").write_text(document("custom:a"), "utf-8")
    (tmp_path / "b.tool.json").symlink_to("a.tool.json")
    (tmp_path / "loop.tool.json").symlink_to("loop.tool.json")
    listed = json.loads(toolagent("validate", str(tmp_path), "--json").stdout)
    assert [(Path(one["file"]).name, one["field"]) for one in listed] == [("large.tool.json", "$"), ("loop.tool.json", "$")]


@pytest.mark.parametrize("target", ["nothing", "empty"])
def test_nothing_to_check_is_wrong_usage(toolagent: Invoke, tmp_path: Path, target: str) -> None:
    (tmp_path / "empty").mkdir()
    assert toolagent("validate", str(tmp_path / target)).exit_code == 2


def test_a_tool_without_examples_does_not_pass(toolagent: Invoke) -> None:
    assert toolagent("test", "echo").exit_code == 1


def test_examples_are_run_and_compared_as_a_part_of_what_comes(
    toolagent: Invoke, service: "Service", monkeypatch: pytest.MonkeyPatch
) -> None:
    from_service: list[JsonValue] = [
        {"description": "fits", "input": {"text": "a", "more": [1]}, "expectedOutput": {"text": "a"}},
        {"description": "any", "input": {"text": "b"}},
        {"description": "differs", "input": {"text": "c", "flag": True}, "expectedOutput": {"text": "d", "flag": 1, "gone": 2}},
    ]
    tools: dict[str, dict[str, JsonValue]] = sys.modules[type(service).__module__].TOOLS
    monkeypatch.setitem(tools, "echo", {**tools["echo"], "examples": from_service})
    result = toolagent("test", "echo", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert [one["passed"] for one in told] == [True, True, False]
    assert [line.split(":")[0] for line in told[2]["reason"].splitlines()] == ["$.text", "$.flag", "$.gone"]
    monkeypatch.setitem(tools, "echo", {**tools["echo"], "examples": from_service[:2]})
    assert toolagent("test", "echo").exit_code == 0
