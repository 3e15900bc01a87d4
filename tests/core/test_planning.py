"""Which way a tool is built."""

import pytest
from pydantic import JsonValue

from toolagent.contracts.making import Finding, FindingKind, Inspection
from toolagent.contracts.plans import AsgiBuild, BuildPlan, CodingBuild, DockerBuild, NothingToBuild, OpenApiRemote, ToolFileBuild
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, MakeRuntime, RepairTool
from toolagent.core.planning import plan


def finding(kind: FindingKind, path: str, **details: JsonValue) -> Finding:
    return Finding(kind=kind, path=path, summary=f"a {kind}", details=details)


TOOL_FILE = finding(FindingKind.TOOL_FILE, "x.tool.json", tool_id="x")
EXAMPLE = finding(FindingKind.TOOL_FILE, "examples/x.tool.json", tool_id="x", aside=True)
FAULTY = finding(FindingKind.TOOL_FILE, "y.tool.json", faults=["$: bad"])
APP = finding(FindingKind.ASGI, "app.py", module="app", attribute="app", is_factory=False, root="src", project="")
LOOSE_APP = finding(FindingKind.ASGI, "app.py", module="app", attribute="app", is_factory=False, root="")
DOCUMENT = finding(FindingKind.OPENAPI, "openapi.json", server_url="https://example.com", operations=1)
PLACELESS = finding(FindingKind.OPENAPI, "openapi.json", operations=1)
OLD = finding(FindingKind.OPENAPI, "swagger.json", refused="Swagger 2.0 is too old")
IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", ports=[80, 90])
MUTE_IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", ports=[])
BAD_IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", refused="ADD https://…")


def planned(*findings: Finding, runtime: MakeRuntime | None = None, code: int = 1) -> BuildPlan:
    spec = GithubDeploy(repo_url="https://example.com/x/y", tool_name="x", runtime=runtime)
    return plan(spec, Inspection(findings=findings, files=9, code_files=code)).model_copy(update={"notes": ()})


ASGI = AsgiBuild(module="app", attribute="app", root="src")
TOOL_FILES = ToolFileBuild(paths=("x.tool.json",))
DOCKER = DockerBuild(dockerfile="Dockerfile", port=80)


def test_the_first_way_without_a_model_is_taken() -> None:
    assert planned(TOOL_FILE, FAULTY, APP, IMAGE) == TOOL_FILES
    assert planned(FAULTY, APP, IMAGE) == ASGI
    assert planned(APP, DOCUMENT, IMAGE) == ASGI.model_copy(update={"document": "openapi.json"})
    assert planned(LOOSE_APP, IMAGE) == DOCKER
    assert planned(DOCUMENT, IMAGE, code=0) == DOCKER.model_copy(update={"document": "openapi.json"})
    assert planned(DOCUMENT, IMAGE) == DOCKER.model_copy(update={"document": "openapi.json"})


def test_tools_for_examples_and_tests_are_meant_where_nothing_else_is_there() -> None:
    example = ToolFileBuild(paths=("examples/x.tool.json",))
    assert planned(TOOL_FILE, EXAMPLE) == TOOL_FILES
    assert planned(EXAMPLE, APP) == ASGI
    assert planned(EXAMPLE) == planned(EXAMPLE, FAULTY) == example
    assert planned(EXAMPLE, runtime="docker") == CodingBuild()


def test_the_runtime_that_is_asked_for_decides() -> None:
    assert planned(APP, IMAGE, runtime="docker") == DOCKER
    assert planned(APP, IMAGE, runtime="uv") == planned(APP, IMAGE, runtime="local") == ASGI
    assert planned(APP, runtime="docker") == CodingBuild()
    assert planned(IMAGE, runtime="local") == CodingBuild()


@pytest.mark.parametrize("runtime", [None, "local", "docker"])
def test_a_document_alone_is_a_service_somewhere_else(runtime: MakeRuntime | None) -> None:
    assert planned(DOCUMENT, runtime=runtime, code=0) == OpenApiRemote(path="openapi.json", server_url="https://example.com")


def test_with_code_beside_it_a_document_is_not_alone() -> None:
    assert planned(DOCUMENT, code=1) == CodingBuild()


@pytest.mark.parametrize("findings", [(), (OLD,), (PLACELESS,), (BAD_IMAGE,), (FAULTY,)])
def test_what_nothing_can_be_run_of_is_nothing_for_the_agent_either(findings: tuple[Finding, ...]) -> None:
    assert isinstance(planned(*findings, code=0), NothingToBuild)


def test_the_reason_says_what_was_wrong_with_what_was_there() -> None:
    spec = GithubDeploy(repo_url="https://example.com/x/y", tool_name="x")
    found = plan(spec, Inspection(findings=(OLD,), files=1))
    assert isinstance(found, NothingToBuild)
    assert found.reason.startswith("swagger.json")
    faulty = PLACELESS.model_copy(update={"details": {"operations": 1, "fault": "It names no server."}})
    found = plan(spec, Inspection(findings=(faulty,), files=1))
    assert isinstance(found, NothingToBuild)
    assert found.reason.startswith("openapi.json: It names no server.")


@pytest.mark.parametrize("findings", [(), (MUTE_IMAGE,), (LOOSE_APP,), (FAULTY,)])
def test_code_that_no_recogniser_can_build_is_for_the_agent(findings: tuple[Finding, ...]) -> None:
    assert planned(*findings) == CodingBuild()


def test_why_not_another_way_is_told_to_the_agent() -> None:
    spec = GithubDeploy(repo_url="https://example.com/x/y", tool_name="x", runtime="docker")
    assert len(plan(spec, Inspection(findings=(APP, FAULTY), code_files=1)).notes) == 2


def test_what_is_to_be_written_or_mended_is_for_the_agent() -> None:
    assert plan(BuildTool(tool_name="x", description="x")) == plan(RepairTool(tool_id="x")) == CodingBuild()
