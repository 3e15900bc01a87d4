"""Programs and MCP servers of repositories become tools: built, installed and inspected in the sandbox."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making.building.builds import Job, Place
from engine.making.building.imported_packages import ImportedPackages
from engine.making.failures import BuildFailed
from engine.making.mcp_servers.building import McpBuilder
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.tools import Described
from engine.making.programs.building import ProgramBuilder
from engine.making.python_projects.preparing import PythonProjects
from engine.runtimes.environments.execution import Executor
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.runtime import ToolRequest
from tests.making.inspection.conftest import written
from tests.runtimes.conftest import silent
from toolagent.contracts.sources import McpSource, ScriptSource
from toolagent_service.contracts.plans import McpBuild, ProgramBuild

ABOUT = Described("notes", "Notes.")

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "notes"
version = "1.2.3"
dependencies = ["colorama==0.4.6"]
scripts = {notes = "notes.cli:main", broken = "notes.cli:missing"}
"""
CLI = """
import argparse, importlib.metadata
import colorama

def main():
    parser = argparse.ArgumentParser()
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("version")
    kinds.add_parser("count").add_argument("text")
    asked = parser.parse_args()
    print(importlib.metadata.version("notes") if asked.kind == "version" else len(asked.text.split()))
"""


async def test_each_command_of_a_program_becomes_a_tool(
    tmp_path: Path, projects: PythonProjects, executor: Executor, imported: ImportedPackages, place: Place
) -> None:
    repository = written(tmp_path / "origin", {"pyproject.toml": PYPROJECT, "notes/__init__.py": "", "notes/cli.py": CLI})
    built = await ProgramBuilder(projects, executor, imported).build(ProgramBuild(), Job(repository, ABOUT, place, silent))
    assert [entry.manifest.tool_id for entry in built.candidate.entries] == ["notes_version", "notes_count"]
    assert [one.operation for one in built.left_out] == ["broken"]
    source = built.candidate.entries[1].sources[0]
    assert isinstance(source, ScriptSource)
    assert source.script_path == "run_count.py"
    assert "colorama==0.4.6" in (place.folder / "requirements.lock").read_text()
    assert (place.folder / "site/notes/cli.py").is_file()
    assert built.notes == ()


SETUP = """
from setuptools import setup
setup(name="notes", version="1.0", packages=["notes"], scripts=["bin/count-words"])
"""
FILE = """#!/usr/bin/env python
import argparse
from notes.words import cut

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Counts.")
    parser.add_argument("text")
    print(len(cut(parser.parse_args().text)))
"""


async def test_a_program_that_a_package_installs_as_a_file_becomes_a_tool(
    tmp_path: Path, projects: PythonProjects, executor: Executor, imported: ImportedPackages, place: Place
) -> None:
    files = {"setup.py": SETUP, "bin/count-words": FILE, "notes/__init__.py": "", "notes/words.py": "cut = str.split\n"}
    repository = written(tmp_path / "origin", files)
    built = await ProgramBuilder(projects, executor, imported).build(ProgramBuild(), Job(repository, ABOUT, place, silent))
    assert [entry.manifest.description for entry in built.candidate.entries] == ["Notes.\n\nCounts."]
    assert '"bin/count-words"' in (place.folder / "commands.json").read_text()


HOSTILE = """
import os, sys

def loud():
    print("x" * 10_000_000)

def reads():
    input()

def leaves():
    os._exit(0)

def lies():
    with open(sys.orig_argv[-1], "w") as out:
        out.write('{"described": {"parameters": [{"name": "x", "kind": "weapon"}]}}')
    os._exit(0)
"""


async def test_parsers_that_attack_become_no_tools(
    tmp_path: Path, projects: PythonProjects, executor: Executor, imported: ImportedPackages, place: Place
) -> None:
    scripts = ", ".join(f'{name} = "notes.cli:{name}"' for name in ("loud", "reads", "leaves", "lies"))
    project = PYPROJECT.replace('notes = "notes.cli:main", broken = "notes.cli:missing"', scripts)
    repository = written(tmp_path / "origin", {"pyproject.toml": project, "notes/__init__.py": "", "notes/cli.py": HOSTILE})
    with pytest.raises(BuildFailed) as failed:
        await ProgramBuilder(projects, executor, imported).build(ProgramBuild(), Job(repository, ABOUT, place, silent))
    for told in (
        "loud: Asked for its help, it did not end, or said too much",
        "reads: ",
        "EOFError",
        "leaves: ",
        "lies: Its parser says what",
    ):
        assert told in failed.value.message


async def test_operations_that_name_nothing_are_told_what_there_is(
    tmp_path: Path, projects: PythonProjects, executor: Executor, imported: ImportedPackages, place: Place
) -> None:
    repository = written(tmp_path / "origin", {"pyproject.toml": PYPROJECT, "notes/__init__.py": "", "notes/cli.py": CLI})
    about = replace(ABOUT, operations=("coutn",))
    with pytest.raises(BuildFailed, match=r"'coutn', which .operations. names, is none of them\. The nearest are: count"):
        await ProgramBuilder(projects, executor, imported).build(ProgramBuild(), Job(repository, about, place, silent))


SERVER = """
import os
from pathlib import Path
from mcp.server.fastmcp import FastMCP

server = FastMCP("notes")

@server.tool()
def add(a: int, b: int) -> int:
    "Adds."
    Path("log.txt").write_text("written where it works")
    return a + b

@server.tool()
def mode() -> str:
    return os.environ["MODE"]
"""


async def test_an_mcp_server_becomes_tools_of_one_process(
    tmp_path: Path, projects: PythonProjects, node: NodeProjects, servers: McpRuntime, place: Place, state: Path
) -> None:
    """It has no `__main__`: the server object in its file is run."""
    repository = written(tmp_path / "origin", {"server.py": SERVER, "requirements.txt": "mcp<2\n"})
    builder = McpBuilder(projects, node, servers, {"MODE": "fast"})
    built = await builder.build(McpBuild(module="server.py"), Job(repository, ABOUT, place, silent))
    adding, mode = built.candidate.entries
    source = adding.sources[0]
    assert isinstance(source, McpSource)
    assert (adding.manifest.tool_id, mode.manifest.tool_id, source.process) == ("notes_add", "notes_mode", "notes")
    own = source.model_copy(update={"environment": {"MODE": "fast"}})
    running = await servers.start(adding.manifest, own, silent)
    try:
        called: JsonValue = await servers.call(running, own, ToolRequest("call-12345678", {"a": 2, "b": 3}, 20.0, tmp_path / "none"))
        assert called == {"result": 5}
    finally:
        await servers.stop(running)


LISTENING = """
from {module} import {name}

server = {name}("notes")

@server.tool()
def add(a: int, b: int) -> int:
    "Adds."
    return a + b

if __name__ == "__main__":
    server.run(transport="streamable-http")
"""


@pytest.mark.parametrize(
    ("module", "name", "wanted"),
    [
        pytest.param("mcp.server.fastmcp", "FastMCP", "mcp<2", marks=pytest.mark.long),
        pytest.param("fastmcp", "FastMCP", "fastmcp", marks=pytest.mark.long),
        ("mcp.server", "MCPServer", "mcp>=2"),
    ],
)
async def test_a_server_that_listens_for_http_speaks_on_stdin_and_stdout_here(
    tmp_path: Path, projects: PythonProjects, node: NodeProjects, servers: McpRuntime, place: Place, module: str, name: str, wanted: str
) -> None:
    repository = written(tmp_path / "origin", {"server.py": LISTENING.format(module=module, name=name), "requirements.txt": wanted + "\n"})
    # Only as the file is run: the server object in it would speak so anyhow.
    built = await McpBuilder(projects, node, servers, {}).build(McpBuild(module="server.py"), Job(repository, ABOUT, place, silent))
    assert "'file'" in (place.folder / "main.py").read_text()
    assert [entry.manifest.name for entry in built.candidate.entries] == ["add"]


WRITING = """\
import { mkdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

mkdirSync(".storage");
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const results = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version } },
    "tools/list": { tools: [{ name: "add", inputSchema: { type: "object" } }] },
  };
  const said = results[method] ? { result: results[method] } : { error: { code: -32601, message: "unknown" } };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, ...said }));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine.")
async def test_a_server_of_nodejs_begins_where_it_may_write(
    tmp_path: Path, projects: PythonProjects, node: NodeProjects, servers: McpRuntime, place: Place
) -> None:
    package: JsonValue = {"name": "notes", "version": "1.0.0", "type": "module", "bin": {"notes": "cli.js"}}
    repository = written(tmp_path / "origin", {"package.json": json.dumps(package), "cli.js": WRITING})
    plan = McpBuild(language="nodejs", programs=("notes",))
    built = await McpBuilder(projects, node, servers, {}).build(plan, Job(repository, ABOUT, place, silent))
    assert [entry.manifest.name for entry in built.candidate.entries] == ["add"]


THREADED = """\
const { fork } = require("node:child_process");
const { once } = require("node:events");
const { createInterface } = require("node:readline");
const { Worker, isMainThread, parentPort } = require("node:worker_threads");

async function serve() {
  const [[thread], [child]] = await Promise.all([once(new Worker(__filename), "message"), once(fork(__filename, ["child"]), "message")]);
  const tools = [process.argv[2], thread, child].map((name) => ({ name, inputSchema: { type: "object" } }));
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    const serverInfo = { name: "notes", version: "1.0.0" };
    const initialize = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo };
    const result = { initialize, "tools/list": { tools } }[method];
    const said = result ? { result } : { error: { code: -32601, message: "unknown" } };
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, ...said }));
  }
}

if (!isMainThread) parentPort.postMessage("in_thread");
else if (process.argv[2] === "child") process.send("in_child");
else if (require.main === module) serve();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine.")
async def test_a_server_of_nodejs_may_start_threads_and_processes(
    tmp_path: Path, projects: PythonProjects, node: NodeProjects, servers: McpRuntime, place: Place
) -> None:
    package: JsonValue = {"name": "notes", "version": "1.0.0", "bin": {"notes": "cli.js"}}
    repository = written(tmp_path / "origin", {"package.json": json.dumps(package), "cli.js": THREADED})
    plan = McpBuild(language="nodejs", programs=("notes",), arguments=("given",))
    built = await McpBuilder(projects, node, servers, {}).build(plan, Job(repository, ABOUT, place, silent))
    assert [entry.manifest.name for entry in built.candidate.entries] == ["given", "in_thread", "in_child"]
