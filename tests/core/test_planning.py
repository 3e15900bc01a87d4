"""Which ways lead to a tool of a repository, and in which order."""

import pytest
from pydantic import JsonValue

from toolagent.contracts.making import Finding, FindingKind, Inspection, Tried
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, MakeRuntime, RepairTool
from toolagent_service.contracts.plans import (
    AsgiBuild,
    BuildPlan,
    CodingBuild,
    DockerBuild,
    McpBuild,
    NothingToBuild,
    OpenApiRemote,
    ProgramBuild,
    ToolFileBuild,
)
from toolagent_service.making.planning import Ways, ways


def finding(kind: FindingKind, path: str, **details: JsonValue) -> Finding:
    return Finding(kind=kind, path=path, summary=f"a {kind}", details=details)


TOOL_FILE = finding(FindingKind.TOOL_FILE, "x.tool.json", tool_id="x")
EXAMPLE = finding(FindingKind.TOOL_FILE, "examples/x.tool.json", tool_id="x", aside=True)
FAULTY = finding(FindingKind.TOOL_FILE, "y.tool.json", faults=["$: bad"])
APP = finding(FindingKind.ASGI, "app.py", module="app", attribute="app", is_factory=False, root="src", project="", framework="fastapi")
LOOSE_APP = finding(FindingKind.ASGI, "app.py", module="app", attribute="app", is_factory=False, root="")
DOCUMENT = finding(FindingKind.OPENAPI, "openapi.json", server_url="https://example.com", operations=1)
PLACELESS = finding(FindingKind.OPENAPI, "openapi.json", operations=1, fault="It names no server.")
OLD = finding(FindingKind.OPENAPI, "swagger.json", refused="Swagger 1.2 is too old")
IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", ports=[80, 90])
MUTE_IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", ports=[])
BAD_IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", refused="ADD https://…")
PROGRAM = finding(FindingKind.CONSOLE_SCRIPT, "cli/pyproject.toml", scripts={"greet": "greet:main"}, language="python")
SERVER = finding(FindingKind.MCP_SERVER, "server.py", project="", language="python", module="server.py")

ASGI = AsgiBuild(module="app", attribute="app", root="src")
TOOL_FILES = ToolFileBuild(paths=("x.tool.json",))
DOCKER = DockerBuild(dockerfile="Dockerfile", port=80)
REMOTE = OpenApiRemote(path="openapi.json", server_url="https://example.com")


def found(*findings: Finding, runtime: MakeRuntime | None = None, code: int = 1) -> Ways:
    spec = GithubDeploy(repo_url="https://example.com/x/y", tool_name="x", runtime=runtime)
    return ways(spec, Inspection(findings=findings, files=9, code_files=code))


def plans(*findings: Finding, runtime: MakeRuntime | None = None) -> list[BuildPlan]:
    return [plan.model_copy(update={"found": ""}) for plan in found(*findings, runtime=runtime).plans]


def test_all_that_was_recognised_is_tried_in_a_fixed_order() -> None:
    everything = (EXAMPLE, DOCUMENT, PROGRAM, IMAGE, APP, SERVER, TOOL_FILE)
    assert plans(*everything) == [
        TOOL_FILES,
        McpBuild(module="server.py"),
        ASGI.model_copy(update={"document": "openapi.json"}),
        DOCKER.model_copy(update={"document": "openapi.json"}),
        ProgramBuild(project="cli", programs=("greet",)),
        REMOTE,
        ToolFileBuild(paths=("examples/x.tool.json",)),
    ]
    assert isinstance(found(*everything).last, CodingBuild)


def test_several_of_one_kind_are_tried_the_best_first() -> None:
    other = finding(FindingKind.DOCKERFILE, "docker/Dockerfile", ports=[8000])
    assert plans(IMAGE, other) == [DOCKER, DockerBuild(dockerfile="docker/Dockerfile", port=8000)]


def test_the_runtime_that_is_asked_for_decides() -> None:
    assert plans(APP, IMAGE, runtime="docker") == [DOCKER]
    assert plans(APP, IMAGE, runtime="uv") == plans(APP, IMAGE, runtime="local") == [ASGI]
    (other,) = [one for one in found(APP, IMAGE, runtime="docker").others if one.outcome == "not_possible"]
    assert (other.way, other.found) == ("asgi", "fastapi app app:app, app.py")


def test_each_way_is_told_of_also_when_nothing_was_found_for_it() -> None:
    told = {(one.way, one.outcome) for one in found(FAULTY, MUTE_IMAGE, LOOSE_APP).others}
    impossible = {("tool_file", "not_possible"), ("docker", "not_possible"), ("asgi", "not_possible")}
    assert told == impossible | {("mcp", "not_found"), ("node_app", "not_found"), ("program", "not_found"), ("openapi_remote", "not_found")}


@pytest.mark.parametrize("findings", [(), (OLD,), (PLACELESS,), (BAD_IMAGE,), (FAULTY,)])
def test_what_nothing_can_be_run_of_is_nothing_for_the_agent_either(findings: tuple[Finding, ...]) -> None:
    assert isinstance(found(*findings, code=0).last, NothingToBuild)


def test_the_reason_says_what_was_wrong_with_what_was_there() -> None:
    last = found(PLACELESS, code=0).last
    assert isinstance(last, NothingToBuild)
    assert last.reason.startswith("openapi.json: It names no server.")


def test_where_the_task_says_where_a_document_is_served_that_counts() -> None:
    url = "http://localhost:4010"
    spec = GithubDeploy(repo_url="https://example.com/x", tool_name="x", server_url=url)
    plans = ways(spec, Inspection(findings=(PLACELESS, DOCUMENT.model_copy(update={"path": "b.json"})))).plans
    assert [(plan.path, plan.server_url) for plan in plans if isinstance(plan, OpenApiRemote)] == [("openapi.json", url), ("b.json", url)]


def test_documents_that_are_served_somewhere_are_tried_before_others_are_counted() -> None:
    others = tuple(PLACELESS.model_copy(update={"path": f"{number}.json"}) for number in range(5))
    assert [plan.way for plan in found(*others, DOCUMENT).plans] == ["openapi_remote"]


def test_what_is_to_be_written_or_mended_is_for_the_agent() -> None:
    nothing = Ways((), (), CodingBuild())
    assert ways(BuildTool(tool_name="x", description="x")) == ways(RepairTool(tool_id="x")) == nothing


def test_ways_are_told_as_they_were_found() -> None:
    assert Tried(way="mcp", outcome="not_found") in found(PROGRAM).others


def test_an_app_is_served_as_what_it_was_recognised_as_asgi_before_wsgi_before_gradio() -> None:
    wsgi, gradio = (APP.model_copy(update={"kind": kind}) for kind in (FindingKind.WSGI, FindingKind.GRADIO))
    assert plans(gradio, wsgi, APP) == [
        ASGI,
        ASGI.model_copy(update={"interface": "wsgi"}),
        ASGI.model_copy(update={"interface": "gradio"}),
    ]
