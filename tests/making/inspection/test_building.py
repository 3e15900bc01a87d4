"""Tools are built from repositories without a model."""

import json
import textwrap
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from engine.making.building.builder import ModellessBuilder
from engine.making.building.builds import Job, Place
from engine.making.failures import BuildFailed
from engine.making.inspection import inspect
from engine.making.openapi.tools import Described
from engine.making.python_projects.preparing import PythonProjects
from engine.making.repositories.cloning import Cloner
from engine.making.repositories.packaging import pack_repository
from engine.making.repositories.trees import Tree
from engine.registry.archives import packed
from engine.runtimes.environments.execution import Executor
from engine.runtimes.failures import StartFailed
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.process.processes import Launcher
from engine.runtimes.runtime import Runtime, ToolRequest
from tests.making.inspection.git import repository
from tests.runtimes.conftest import leftovers, silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import DockerSource, LocalSource, RemoteSource
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.plans import AsgiBuild, DockerBuild, OpenApiRemote, ToolFileBuild
from toolagent_service.making.planning import ways

REPOSITORIES = Path(__file__).parents[1] / "repositories"
ABOUT = Described("notes", "Notes.")


@pytest.fixture
def builder(projects: PythonProjects, local: LocalRuntime) -> ModellessBuilder:
    return ModellessBuilder(projects, local)


def files_of(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def called(local: LocalRuntime, entry: ToolEntry, **params: JsonValue) -> JsonValue:
    source = entry.sources[0]
    assert isinstance(source, LocalSource)
    running = await local.start(entry.manifest, source, silent)
    try:
        return await local.call(running, source, ToolRequest("call-12345678", params, 20.0, Path("/nonexistent")))
    finally:
        await local.stop(running)


async def test_a_repository_with_an_app_becomes_tools_that_answer(
    tmp_path: Path, launcher: Launcher, sandbox: Sandboxing, builder: ModellessBuilder, local: LocalRuntime, place: Place
) -> None:
    url = repository(tmp_path / "origin", files_of(REPOSITORIES / "notes"))
    clone = await Cloner(Executor(launcher, sandbox.sandbox), schemes=("file",)).clone(url, tmp_path / "clone")
    (way, *_) = ways(GithubDeploy(repo_url=url, tool_name="notes"), inspect(Tree.read(clone.folder))).plans
    assert isinstance(way, AsgiBuild)
    assert (way.module, way.attribute, way.root, way.project) == ("notes.main", "app", "src", "")
    built = await builder.asgi(way, Job(clone.folder, ABOUT, place, silent))
    counting, repeating = built.candidate.entries
    assert built.folders == {"notes_count_words": place.folder, "notes_repeat": place.folder}
    assert await called(local, counting, text="one two") == {"words": 2}
    assert await called(local, repeating, text="a", times=3) == ["a", "a", "a"]


# An app without any package, as the server is all that the launcher needs.
BARE = """
    import json
    from pathlib import Path

    from helper import DOCUMENT

    class Starlette: ...

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        known = {"/openapi.json": DOCUMENT, "/where": {"name": __name__, "data": Path("data.txt").read_text()}}
        found = known.get(scope["path"])
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200 if found else 404, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(found).encode()})
"""
DOCUMENT: JsonValue = {"openapi": "3.1.0", "info": {"title": "T"}, "paths": {"/where": {"get": {"responses": {"200": {}}}}}}
PLAN = AsgiBuild(module="main", attribute="app")


def bare(folder: Path, document: JsonValue, text: str = BARE, **files: str) -> Path:
    """A repository whose own `main.py` is the app."""
    folder.mkdir()
    whole = {"main.py": textwrap.dedent(text), "helper.py": f"DOCUMENT = {document!r}\n", "data.txt": "read", "requirements.txt": ""}
    for name, content in {**whole, **files}.items():
        (folder / name).write_text(content)
    return folder


async def test_the_repository_s_own_main_is_not_taken_for_ours(
    tmp_path: Path, builder: ModellessBuilder, local: LocalRuntime, place: Place
) -> None:
    built = await builder.asgi(PLAN, Job(bare(tmp_path / "origin", DOCUMENT), ABOUT, place, silent))
    (entry,) = built.candidate.entries
    assert entry.manifest.tool_id == "notes"
    assert await called(local, entry) == {"name": "main", "data": "read"}
    assert not place.work.is_dir()


async def test_a_document_in_the_repository_counts_where_the_app_says_nothing(
    tmp_path: Path, builder: ModellessBuilder, place: Place
) -> None:
    folder = bare(tmp_path / "origin", None)
    with pytest.raises(BuildFailed, match="says nothing"):
        await builder.asgi(PLAN, Job(folder, ABOUT, place, silent))
    (folder / "openapi.json").write_text(json.dumps(DOCUMENT))
    built = await builder.asgi(PLAN.model_copy(update={"document": "openapi.json"}), Job(folder, ABOUT, place, silent))
    assert [entry.manifest.name for entry in built.candidate.entries] == ["GET /where"]


async def test_an_app_that_leads_on_from_where_nobody_said_that_its_health_is_starts(
    tmp_path: Path, builder: ModellessBuilder, local: LocalRuntime, place: Place
) -> None:
    leads_on = BARE.replace("200 if found else 404", "200 if found else 307")
    built = await builder.asgi(PLAN, Job(bare(tmp_path / "origin", DOCUMENT, leads_on), ABOUT, place, silent))
    assert await called(local, built.candidate.entries[0]) == {"name": "main", "data": "read"}


async def test_an_app_that_does_not_start_says_why(tmp_path: Path, builder: ModellessBuilder, place: Place) -> None:
    folder = bare(tmp_path / "origin", None, "raise RuntimeError('no database here')\n")
    with pytest.raises(BuildFailed) as caught:
        await builder.asgi(PLAN, Job(folder, ABOUT, place, silent))
    assert caught.value.message.endswith("It said last: RuntimeError: no database here")


class Unstarted:
    """A runtime in which no tool starts."""

    def __init__(self, failure: StartFailed) -> None:
        self._failure = failure

    async def start(self, *_: object) -> object:
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (StartFailed(ErrorType.DEPENDENCY_ERROR, "It could not be built.", {"dockerfile": "D", "log": "a\nb"}), "It could not be built."),
        (
            StartFailed(ErrorType.UNAVAILABLE, "It did not answer.", {"last_answer": "no answer", "log": ""}),
            "The app does not start: It did not answer. Does it listen on 0.0.0.0, at the port 9000 that the Dockerfile exposes?",
        ),
        (
            StartFailed(ErrorType.UNAVAILABLE, "It ended.", {"ended": "x", "log": "a\nno config\n"}),
            "The app does not start: It ended. It said last: no config",
        ),
        (
            StartFailed(
                ErrorType.UNAVAILABLE,
                "It ended.",
                {"log": "Traceback (most recent call last):\n  a\nshop.errors.ConfigError: KEY is missing.\nMake one:\n  openssl rand"},
            ),
            "The app does not start: It ended. It said last: shop.errors.ConfigError: KEY is missing.",
        ),
    ],
)
async def test_why_a_container_does_not_start_is_said_first(
    tmp_path: Path, projects: PythonProjects, local: LocalRuntime, place: Place, failure: StartFailed, told: str
) -> None:
    builder = ModellessBuilder(projects, local, cast("Runtime[DockerSource]", Unstarted(failure)))
    (tmp_path / "origin").mkdir()
    with pytest.raises(BuildFailed) as caught:
        await builder.docker(DockerBuild(dockerfile="Dockerfile", port=9000), Job(tmp_path / "origin", ABOUT, place, silent))
    assert caught.value.message == told


async def test_nothing_runs_after_a_build(tmp_path: Path, builder: ModellessBuilder, place: Place, state: Path) -> None:
    await builder.asgi(PLAN, Job(bare(tmp_path / "origin", DOCUMENT), ABOUT, place, silent))
    assert leftovers(state) == []


async def test_a_plan_that_leads_out_of_the_repository_is_refused(tmp_path: Path, builder: ModellessBuilder, place: Place) -> None:
    folder = bare(tmp_path / "origin", DOCUMENT)
    for bad in (PLAN.model_copy(update={"root": "../.."}), PLAN.model_copy(update={"attribute": "app');evil('"})):
        with pytest.raises(BuildFailed):
            await builder.asgi(bad, Job(folder, ABOUT, place, silent))


def remote_document(url: str) -> str:
    return json.dumps({**DOCUMENT, "servers": [{"url": url}]} if isinstance(DOCUMENT, dict) else None)


async def resolve(host: str, _: int) -> list[str]:
    return {"public.test": ["93.184.216.34"], "private.test": ["10.0.0.1"]}.get(host, ["127.0.0.1"])


@pytest.mark.parametrize("url", ["https://private.test", "http://localhost:8000", "http://127.0.0.1", "http://169.254.169.254", "/api"])
async def test_a_server_that_is_not_public_is_not_called(
    tmp_path: Path, projects: PythonProjects, local: LocalRuntime, place: Place, url: str
) -> None:
    (tmp_path / "openapi.json").write_text(remote_document(url))
    builder = ModellessBuilder(projects, local, resolve=resolve)
    with pytest.raises(BuildFailed):
        await builder.remote(
            OpenApiRemote(path="openapi.json", server_url=url),
            Job(tmp_path, ABOUT, place, silent),
        )


async def test_a_document_alone_becomes_remote_tools(tmp_path: Path, projects: PythonProjects, local: LocalRuntime, place: Place) -> None:
    (tmp_path / "openapi.json").write_text(remote_document("https://public.test/v1"))
    builder = ModellessBuilder(projects, local, resolve=resolve)
    built = await builder.remote(
        OpenApiRemote(path="openapi.json", server_url="https://public.test/v1"),
        Job(tmp_path, ABOUT, place, silent),
    )
    (entry,) = built.candidate.entries
    assert entry.sources == (
        RemoteSource(remote_url="https://public.test/v1", endpoint_path="/where", http_method="GET", only_public=True),
    )


def tool_file(name: str) -> str:
    handler = {"type": "external-script", "scriptPath": "x.py", "language": "python"}
    return json.dumps({"toolId": name, "displayName": "X", "description": "x", "version": "1.2.3", "handler": handler})


async def test_tools_in_files_take_the_name_of_the_task(tmp_path: Path, builder: ModellessBuilder, place: Place) -> None:
    (tmp_path / "x.py").write_text("print(1)")
    (tmp_path / "a.tool.json").write_text(tool_file("core:a"))
    (tmp_path / "b.tool.json").write_text(tool_file("b"))
    one = await builder.of_tool_files(ToolFileBuild(paths=("a.tool.json",)), Job(tmp_path, ABOUT, place, silent))
    assert [(entry.manifest.tool_id, entry.manifest.version) for entry in one.candidate.entries] == [("notes", "1.2.3")]
    assert one.folders == {"notes": tmp_path}
    both = await builder.of_tool_files(ToolFileBuild(paths=("a.tool.json", "b.tool.json")), Job(tmp_path, ABOUT, place, silent))
    assert [entry.manifest.tool_id for entry in both.candidate.entries] == ["notes_a", "notes_b"]
    assert both.candidate.group is not None


async def test_a_script_that_names_its_files_has_these_alone(tmp_path: Path, builder: ModellessBuilder, place: Place) -> None:
    for name in ("x.py", "y.py", "README.md", "lib/one.py", "lib/deep/two.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    handler = {"type": "external-script", "scriptPath": "x.py", "language": "python", "files": ["lib"]}
    (tmp_path / "a.tool.json").write_text(json.dumps({**json.loads(tool_file("a")), "handler": handler}))
    built = await builder.of_tool_files(ToolFileBuild(paths=("a.tool.json",)), Job(tmp_path, ABOUT, place, silent))
    folder = built.folders["notes"]
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {"x.py", "lib/one.py", "lib/deep/two.py"}
    other = {**json.loads(tool_file("b")), "handler": {**handler, "scriptPath": "y.py", "files": ["x.py"]}}
    (tmp_path / "b.tool.json").write_text(json.dumps(other))
    with pytest.raises(BuildFailed, match=r"b.tool.json: \$.handler.files\[0\]: 'x.py' is the script of 'a'"):
        await builder.of_tool_files(ToolFileBuild(paths=("a.tool.json", "b.tool.json")), Job(tmp_path, ABOUT, place, silent))


async def test_the_files_that_tools_name_have_one_bound_together(tmp_path: Path, builder: ModellessBuilder, place: Place) -> None:
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(30 << 20)
    (tmp_path / "link.bin").symlink_to("data.bin")
    for name in "ab":
        (tmp_path / f"{name}.py").write_text("print(1)")
        handler = {"type": "external-script", "scriptPath": f"{name}.py", "language": "python", "files": ["link.bin"]}
        (tmp_path / f"{name}.tool.json").write_text(json.dumps({**json.loads(tool_file(name)), "handler": handler}))
    with pytest.raises(BuildFailed, match="more than 48 MiB"):
        await builder.of_tool_files(ToolFileBuild(paths=("a.tool.json", "b.tool.json")), Job(tmp_path, ABOUT, place, silent))


async def test_what_is_no_tool_of_those_in_files_is_told(tmp_path: Path, builder: ModellessBuilder, place: Place) -> None:
    for folder in ("", "examples", "scripts"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "x.py").write_text("print(1)")
        (tmp_path / folder / "a.tool.json").write_text(tool_file("a"))
    (tmp_path / "b.tool.json").write_text("{}")
    (way, *_) = ways(GithubDeploy(repo_url="https://example.com/x/y", tool_name="notes"), inspect(Tree.read(tmp_path))).plans
    assert isinstance(way, ToolFileBuild)
    assert way.paths == ("a.tool.json", "scripts/a.tool.json")
    assert isinstance(way, ToolFileBuild)
    left_out = {one.operation: one.reason for one in (await builder.of_tool_files(way, Job(tmp_path, ABOUT, place, silent))).left_out}
    assert set(left_out) == {"b.tool.json", "examples/a.tool.json"}
    assert "cannot be used" in left_out["b.tool.json"]


@pytest.mark.parametrize(("count", "size", "told"), [(15_001, 0, "15,001 files"), (1, 49 << 20, "largest file is 0.bin with 49.0 MiB")])
async def test_a_repository_that_is_too_large_for_a_tool_is_refused_before_it_is_built(
    tmp_path: Path, builder: ModellessBuilder, place: Place, count: int, size: int, told: str
) -> None:
    (tmp_path / "origin").mkdir()
    for number in range(count):
        with (tmp_path / "origin" / f"{number}.bin").open("wb") as file:
            file.truncate(size)
    with pytest.raises(BuildFailed, match=told):
        await builder.asgi(PLAN, Job(tmp_path / "origin", ABOUT, place, silent))


async def test_without_docker_a_dockerfile_is_not_built(tmp_path: Path, builder: ModellessBuilder, place: Place) -> None:
    with pytest.raises(BuildFailed, match="Docker"):
        await builder.docker(DockerBuild(dockerfile="Dockerfile", port=80), Job(tmp_path, ABOUT, place, silent))


def test_links_to_files_are_packed_as_files_and_links_to_folders_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "origin"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a.txt").write_text("a")
    (folder / "link.txt").symlink_to("inner/a.txt")
    (folder / "folder").symlink_to("inner")
    (folder / "out.txt").symlink_to("/etc/hostname")
    pack_repository(folder, tmp_path / "packed")
    assert files_of(tmp_path / "packed") == {"inner/a.txt": "a", "link.txt": "a"}
    assert packed(tmp_path / "packed")
