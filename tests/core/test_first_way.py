"""A task that began before several ways were tried goes on with its one way, so that its history can be replayed."""

import pytest
from pydantic import JsonValue

from toolagent.contracts.making import Finding, FindingKind, Inspection
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, MakeRuntime
from toolagent_service.making.first_way import first_way
from toolagent_service.making.planning import Ways, ways


def finding(kind: FindingKind, path: str, **details: JsonValue) -> Finding:
    return Finding(kind=kind, path=path, summary=f"a {kind}", details=details)


APP = finding(FindingKind.ASGI, "app.py", module="app", attribute="app", project="")
APP_BELOW = finding(FindingKind.ASGI, "one/app.py", module="one", attribute="app", project="one")
SERVER = finding(FindingKind.MCP_SERVER, "server.py", project="", language="python", module="server.py")
PROGRAM = finding(FindingKind.CONSOLE_SCRIPT, "pyproject.toml", scripts={"greet": "greet:main"})
IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", ports=[80])
MUTE_IMAGE = finding(FindingKind.DOCKERFILE, "Dockerfile", ports=[])
DOCUMENT = finding(FindingKind.OPENAPI, "openapi.json", server_url="https://example.com", operations=1)
EXAMPLE = finding(FindingKind.TOOL_FILE, "examples/x.tool.json", tool_id="x", aside=True)


def first(*findings: Finding, code: int = 1, runtime: MakeRuntime | None = None) -> Ways:
    spec = GithubDeploy(repo_url="https://example.com/x/y", tool_name="x", runtime=runtime)
    inspection = Inspection(findings=findings, files=9, code_files=code)
    return first_way(spec, ways(spec, inspection), inspection)


@pytest.mark.parametrize(
    ("findings", "code", "chosen"),
    [
        ((SERVER, APP, IMAGE), 1, "asgi"),
        # What is at the top of the repository goes first today; it did not then.
        ((APP_BELOW, IMAGE), 1, "asgi"),
        ((MUTE_IMAGE, DOCUMENT), 0, "openapi_remote"),
        ((PROGRAM, DOCUMENT), 0, "openapi_remote"),
        ((EXAMPLE, DOCUMENT), 0, "openapi_remote"),
    ],
)
def test_one_way_is_taken_and_no_other_is_tried(findings: tuple[Finding, ...], code: int, chosen: str) -> None:
    found = first(*findings, code=code)
    assert [plan.way for plan in found.plans] == [chosen]
    assert not found.goes_on
    assert found.last.way == "coding"


@pytest.mark.parametrize(
    ("findings", "code", "last"), [((PROGRAM, DOCUMENT), 1, "coding"), ((DOCUMENT.model_copy(update={"details": {}}),), 0, "nothing")]
)
def test_where_there_was_none_the_agent_was_asked_or_nobody(findings: tuple[Finding, ...], code: int, last: str) -> None:
    found = first(*findings, code=code)
    assert found.plans == ()
    assert found.last.way == last


def test_the_runtime_that_was_asked_for_decided() -> None:
    assert [plan.way for plan in first(APP, IMAGE, runtime="docker").plans] == ["docker"]


def test_what_is_to_be_written_is_for_the_agent() -> None:
    spec = BuildTool(tool_name="x", description="x")
    assert first_way(spec, ways(spec), Inspection()) == ways(spec)
