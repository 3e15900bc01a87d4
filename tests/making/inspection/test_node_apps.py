"""Node.js apps become local tools: started in the sandbox, inspected, and called."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making import node_projects
from engine.making.building.builds import Built, Job, Place
from engine.making.failures import BuildFailed
from engine.making.inspection import inspect
from engine.making.node_projects.apps import NodeAppBuilder
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.tools import Described
from engine.making.repositories.trees import Tree
from engine.runtimes.environments.execution import Executor
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.process.processes import Launcher
from engine.runtimes.runtime import ToolRequest
from tests.parts import installer_of, machine_indexes
from tests.runtimes.conftest import silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.plans import NodeAppBuild
from toolagent_service.making.planning import ways

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine.")

REPOSITORIES = Path(__file__).parents[1] / "repositories"
ABOUT = Described("it", "An app.")
SPEC = GithubDeploy(repo_url="https://example.com/a/b", tool_name="it")


@pytest.fixture
def apps(launcher: Launcher, sandbox: Sandboxing, local: LocalRuntime) -> NodeAppBuilder:
    known, executor = sandbox.environments.programs, Executor(launcher, sandbox.sandbox)
    installer = installer_of(machine_indexes(known), sandbox.egress)
    return NodeAppBuilder(NodeProjects(NpmRuns(executor, known, installer), sandbox.environments), local, executor, {})


async def built_of(apps: NodeAppBuilder, repository: Path, place: Place) -> Built:
    plan = next(one for one in ways(SPEC, inspect(Tree.read(repository))).plans if isinstance(one, NodeAppBuild))
    return await apps.build(plan, Job(repository, ABOUT, place, silent))


async def called(local: LocalRuntime, built: Built, calls: Mapping[str, Mapping[str, JsonValue]]) -> list[JsonValue]:
    """The results of the calls, all in one process."""
    entries = {entry.manifest.tool_id: entry for entry in built.candidate.entries}
    first = next(iter(entries.values()))
    running = await local.start(first.manifest, source_of(first), silent)
    try:
        return [
            await local.call(running, source_of(entries[name]), ToolRequest("call-12345678", dict(params), 20.0, Path("/nonexistent")))
            for name, params in calls.items()
        ]
    finally:
        await local.stop(running)


def source_of(entry: ToolEntry) -> LocalSource:
    (source,) = entry.sources
    assert isinstance(source, LocalSource)
    return source


async def test_routes_of_an_app_without_a_document_become_tools(apps: NodeAppBuilder, local: LocalRuntime, place: Place) -> None:
    built = await built_of(apps, REPOSITORIES / "express_shop", place)
    schemas = {entry.manifest.tool_id: entry.manifest.input_schema for entry in built.candidate.entries}
    assert sorted(schemas) == ["it_get", "it_get_api_items_id", "it_get_first", "it_post_api_items"]
    assert schemas["it_post_api_items"]["properties"] == {"name": {}, "size": {}}
    assert await called(
        local,
        built,
        {
            "it_get": {},
            "it_get_api_items_id": {"id": "7", "lang": "de"},
            "it_get_first": {},
            "it_post_api_items": {"name": "pear"},
        },
    ) == [
        "<h1>items</h1>",
        {"id": "7", "lang": "de"},
        {"status": 302, "location": "/api/items/1"},
        {"name": "pear", "size": 3, "started": "yes"},
    ]


async def test_a_document_in_the_repository_goes_before_what_routes_say(apps: NodeAppBuilder, local: LocalRuntime, place: Place) -> None:
    built = await built_of(apps, REPOSITORIES / "express_documented", place)
    entry = next(one for one in built.candidate.entries if one.manifest.tool_id == "it_double")
    assert entry.manifest.input_schema["properties"] == {"number": {"type": "integer", "minimum": 0, "maximum": 1000}}
    assert await called(local, built, {"it_double": {"number": 21}, "it_feed": {}}) == [{"doubled": 42}, "<rss/>"]


DOCUMENTS = Path(node_projects.__file__).parent / "inside/documents.mjs"
SHOWN = """
import http from "node:http";
import { createRequire } from "node:module";
const { documentOf, watchDocuments } = await import(process.argv[1]);
const required = createRequire(process.argv[2]);
watchDocuments(required);
const paths = { "/count": { get: { operationId: "countWords" } } };
const info = { openapi: "3.0.0", servers: [{ url: "http://localhost:3000/api" }], paths };
required("swagger-ui-express")?.setup?.(info);
required("swagger-jsdoc")?.(info);
const route = { path: "/api/count", methods: { get: true }, stack: [] };
const app = Object.assign((_, response) => response.end(), { _router: { stack: [{ route }] } });
const server = http.createServer(app);
await new Promise((done) => server.listen(0, "127.0.0.1", done));
process.stdout.write(JSON.stringify(await documentOf(server)), () => process.exit());
"""


@pytest.mark.parametrize(
    "packages",
    [
        {"swagger-ui-express": "exports.setup = () => undefined;", "swagger-jsdoc": ""},
        {"swagger-ui-express": "", "swagger-jsdoc": "module.exports = (made) => made;"},
    ],
    ids=["what is shown", "what comments say"],
)
def test_a_document_that_an_app_makes_is_read_at_the_place_of_its_routes(tmp_path: Path, packages: Mapping[str, str]) -> None:
    """Stand-ins for the two packages; the real ones are in the long test below."""
    for name, text in packages.items():
        (tmp_path / "node_modules" / name).mkdir(parents=True)
        (tmp_path / "node_modules" / name / "index.js").write_text(text or "module.exports = undefined;")
    command = ["node", "--input-type=module", "--eval", SHOWN, DOCUMENTS.as_uri(), str(tmp_path / "app.js")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(ran.stdout) == {"openapi": "3.0.0", "paths": {"/api/count": {"get": {"operationId": "countWords"}}}}


@pytest.mark.long
async def test_a_document_that_is_only_shown_as_a_page_is_read_at_the_place_of_its_routes(
    apps: NodeAppBuilder, local: LocalRuntime, place: Place
) -> None:
    built = await built_of(apps, REPOSITORIES / "express_jsdoc", place)
    (entry,) = built.candidate.entries
    assert "Counts words" in entry.manifest.description
    assert await called(local, built, {"it": {"text": "one two three"}}) == [3]


NEEDS = """
const socket = require("node:net").connect(27017, "127.0.0.1");
socket.on("error", (error) => { console.error("gave up"); process.exit(1); });
socket.on("connect", () => require("express")().listen(3000));
"""


async def test_an_app_that_needs_a_database_says_which(tmp_path: Path, apps: NodeAppBuilder, place: Place) -> None:
    # What it depends on is installed once for it and for the shop.
    package = json.loads((REPOSITORIES / "express_shop/package.json").read_text())
    (tmp_path / "origin").mkdir()
    (tmp_path / "origin/package.json").write_text(json.dumps({**package, "scripts": {"start": "node index.js"}}))
    (tmp_path / "origin/index.js").write_text(NEEDS)
    with pytest.raises(BuildFailed, match=r"cannot reach MongoDB at 127\.0\.0\.1:27017"):
        await built_of(apps, tmp_path / "origin", place)
