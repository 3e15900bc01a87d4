"""Apps other than FastAPI become tools: Flask, Starlette without a document, Gradio."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making.building.builder import ModellessBuilder
from engine.making.building.builds import Job, Place
from engine.making.inspection import inspect
from engine.making.openapi.tools import Described
from engine.making.python_projects.preparing import PythonProjects
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.runtimes.environments.execution import Executor
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.process.processes import Launcher
from engine.runtimes.runtime import Running, ToolRequest
from tests.parts import installer_of, machine_indexes
from tests.runtimes.conftest import silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Candidate
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.plans import AsgiBuild
from toolagent_service.making.planning import ways

REPOSITORIES = Path(__file__).parents[1] / "repositories"


@pytest.fixture
def builder(launcher: Launcher, sandbox: Sandboxing, local: LocalRuntime) -> ModellessBuilder:
    programs = sandbox.environments.programs
    installer = installer_of(machine_indexes(programs), sandbox.egress)
    runs = UvRuns(Executor(launcher, sandbox.sandbox), programs, installer)
    return ModellessBuilder(PythonProjects(runs, ProjectLocks(runs), sandbox.environments), local)


@pytest.fixture
def place(state: Path) -> Place:
    return Place(state / "tools" / "it" / "project", "../tools/it/project", state / "tools" / "it" / "lock")


def plan_of(repository: Path) -> AsgiBuild:
    (way, *_) = ways(GithubDeploy(repo_url="https://example.com/x/y", tool_name="it"), inspect(Tree.read(repository))).plans
    assert isinstance(way, AsgiBuild)
    return way


class Served:
    """The tools of a candidate, called in one process."""

    def __init__(self, local: LocalRuntime, running: Running, candidate: Candidate) -> None:
        self._local, self._running = local, running
        self.entries = {entry.manifest.tool_id: entry for entry in candidate.entries}

    async def call(self, tool_id: str, **params: JsonValue) -> JsonValue:
        request = ToolRequest("call-12345678", params, 20.0, Path("/nonexistent"))
        return await self._local.call(self._running, source_of(self.entries[tool_id]), request)

    def parameters(self, tool_id: str) -> JsonValue:
        return self.entries[tool_id].manifest.input_schema.get("properties")

    def required(self, tool_id: str) -> JsonValue:
        return self.entries[tool_id].manifest.input_schema.get("required", [])


@asynccontextmanager
async def served(local: LocalRuntime, candidate: Candidate) -> AsyncGenerator[Served]:
    first = candidate.entries[0]
    running = await local.start(first.manifest, source_of(first), silent)
    try:
        yield Served(local, running, candidate)
    finally:
        await local.stop(running)


def source_of(entry: ToolEntry) -> LocalSource:
    source = entry.sources[0]
    assert isinstance(source, LocalSource)
    return source


async def test_a_flask_app_without_a_document_becomes_tools_of_its_routes(
    builder: ModellessBuilder, local: LocalRuntime, place: Place
) -> None:
    plan = plan_of(REPOSITORIES / "flask_shop")
    assert (plan.interface, plan.module, plan.attribute) == ("wsgi", "app", "app")
    built = await builder.asgi(plan, Job(REPOSITORIES / "flask_shop", Described("it"), place, silent))
    async with served(local, built.candidate) as app:
        assert await app.call("it_index") == "<h1>2 items</h1>"
        assert await app.call("it_item", item_id=2) == {"id": 2, "name": "pear"}
        assert await app.call("it_search", word=["a", "b"], exact="yes") == {"limit": 5, "words": ["a", "b"], "exact": True}
        assert await app.call("it_add", a=1, b=2) == {"sum": 3}
        assert await app.call("it_named", name="a/b.txt") == {"name": "a/b.txt"}
        assert app.required("it_add") == ["a"]
        assert app.parameters("it_search") == {
            "limit": {"type": "integer", "default": 5},
            "word": {"type": "array", "items": {"type": "string"}},
            "exact": {"type": "string"},
        }
        assert {tool_id for tool_id in app.entries if tool_id.startswith("it_note")} == {"it_note_get", "it_note_delete"}


async def test_a_wsgi_file_that_calls_the_factory_of_another_module_is_an_app(
    builder: ModellessBuilder, local: LocalRuntime, place: Place
) -> None:
    plan = plan_of(REPOSITORIES / "flask_factory")
    assert (plan.module, plan.attribute, plan.is_factory) == ("wsgi", "app", False)
    built = await builder.asgi(plan, Job(REPOSITORIES / "flask_factory", Described("it"), place, silent))
    async with served(local, built.candidate) as app:
        assert await app.call("it", number=2.5) == {"doubled": 5.0}


async def test_routes_are_read_of_an_app_whose_document_gives_no_tool(
    builder: ModellessBuilder, local: LocalRuntime, place: Place, tmp_path: Path
) -> None:
    repository = shutil.copytree(REPOSITORIES / "flask_factory", tmp_path / "it")
    (repository / "wsgi.py").write_text(_DESCRIBED)
    built = await builder.asgi(plan_of(repository), Job(repository, Described("it"), place, silent))
    async with served(local, built.candidate) as app:
        assert await app.call("it_api_double", number=2) == {"doubled": 4.0}
    assert "its document gives no tool" in built.notes[0]


_DESCRIBED = """
from shop import create_app

app = create_app("production")
LOGIN = {"type": "http", "scheme": "bearer"}
GUARDED = {"get": {"security": [{"token": []}], "responses": {}}}


@app.get("/openapi.json")
def described():
    about = {"title": "Guarded", "version": "1"}
    return {"openapi": "3.1.0", "info": about, "components": {"securitySchemes": {"token": LOGIN}}, "paths": {"/mine": GUARDED}}
"""


async def test_an_asgi_app_without_a_document_becomes_tools_of_its_routes(
    builder: ModellessBuilder, local: LocalRuntime, place: Place
) -> None:
    repository = REPOSITORIES / "starlette_notes"
    built = await builder.asgi(plan_of(repository), Job(repository, Described("it"), place, silent))
    async with served(local, built.candidate) as app:
        assert await app.call("it_squared", number=3) == {"squared": 9}
        assert await app.call("it_upper", text="ab") == "AB"
        assert await app.call("it_words", text="a b c") == {"words": 3}


TEXTS = """
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

app = FastAPI()

@app.get("/table", response_class=PlainTextResponse)
def table() -> str:
    return "a,b"

@app.get("/feed", responses={200: {"content": {"application/xml": {}}}}, response_class=Response)
def feed() -> Response:
    return Response("<a/>", media_type="application/xml")

@app.get("/short")
def short():
    return RedirectResponse("https://example.com/long")

@app.get("/events", responses={200: {"content": {"text/event-stream": {}}}}, response_class=StreamingResponse)
def events():
    return StreamingResponse(["data: 1"], media_type="text/event-stream")
"""


async def test_texts_and_redirects_of_an_app_that_describes_itself_are_answers(
    tmp_path: Path, builder: ModellessBuilder, local: LocalRuntime, place: Place
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "main.py").write_text(TEXTS)
    (repository / "requirements.txt").write_text("fastapi\n")
    built = await builder.asgi(plan_of(repository), Job(repository, Described("it"), place, silent))
    assert [str(one) for one in built.left_out] == ["GET /events: It answers with text/event-stream only, neither JSON nor text."]
    async with served(local, built.candidate) as app:
        said = [await app.call(tool_id) for tool_id in app.entries]
    assert said == ["a,b", "<a/>", {"status": 307, "location": "https://example.com/long"}]


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_gradio_app_becomes_tools_of_its_named_endpoints(builder: ModellessBuilder, local: LocalRuntime, place: Place) -> None:
    repository = REPOSITORIES / "gradio_words"
    plan = plan_of(repository)
    assert plan.interface == "gradio"
    built = await builder.asgi(plan, Job(repository, Described("it"), place, silent))
    assert next((one.operation, one.reason) for one in built.left_out) == (
        "POST /size",
        "It takes a file (image: Image), which is not handed to it.",
    )
    async with served(local, built.candidate) as app:
        assert await app.call("it", text="a bb ccc", least=2) == 2
        assert await app.call("it", text="abc", kind="letters") == 3
