"""Valid requests for tasks, and the errors of invalid ones."""

from collections.abc import Collection

import pytest
from pydantic import JsonValue

from toolagent.contracts.calls import Caller
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.task_specs import BuildTool, Example, GithubDeploy, MakeLimits, RepairTool
from toolagent.core.suggestions import nearest
from toolagent.core.task_requests import (
    SpecError,
    prose_spec,
    read_spec,
    request_fingerprint,
    request_key,
    task_id_for,
    tool_name_from,
)

DEPLOY: dict[str, JsonValue] = {"type": "github_deploy", "repo_url": "https://github.com/user/project", "tool_name": "project_api"}
BUILD: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "word_counter", "description": "Count."}
TOO_MANY: JsonValue = [{"input": {}, "expected_output": 1} for _ in range(101)]
MANY_STRANGE: JsonValue = [{"input": {}, "expected": 1, "output": 1} for _ in range(101)]
TOO_LARGE: JsonValue = [{"input": {"text": "x" * 3_000}, "expected_output": 1} for _ in range(100)]


def test_the_specifications_of_the_first_interface_are_read() -> None:
    assert read_spec({**DEPLOY, "runtime": "docker"}, "将该项目部署") == GithubDeploy(
        repo_url="https://github.com/user/project", tool_name="project_api", runtime="docker", description="将该项目部署"
    )
    assert read_spec({"type": "repair_tool", "tool_id": "x", "error": "HTTP 503"}) == RepairTool(tool_id="x", error="HTTP 503")
    example: JsonValue = {"input": {"a": 1}, "expected_output": [2]}
    assert read_spec({**BUILD, "runtime": "uv", "examples": [example], "limits": {"turns": 3}}, "not this") == BuildTool(
        tool_name="word_counter",
        description="Count.",
        runtime="uv",
        examples=(Example(input={"a": 1}, expected_output=[2]),),
        limits=MakeLimits(turns=3),
    )


REFUSED: list[tuple[dict[str, JsonValue], list[str], str]] = [
    ({}, ["task_spec.type"], "github_deploy, build_tool, repair_tool"),
    ({"type": "build"}, ["task_spec.type"], "Did you mean build_tool?"),
    ({"type": ["x"]}, ["task_spec.type"], "There is no type"),
    ({"type": "github_deploy", "tool_name": "x"}, ["task_spec.repo_url"], "address of the repository"),
    ({"type": "github_deploy"}, ["task_spec.repo_url", "task_spec.tool_name"], "It is missing"),
    ({"type": "build_tool", "tool_name": "x"}, ["task_spec.description"], "say what the tool is to do"),
    ({"type": "build_tool", "description": "Count the words"}, ["task_spec.tool_name"], "such as 'count_words'"),
    ({**BUILD, "tool_name": "Word Counter!"}, ["task_spec.tool_name"], "'word_counter' would do"),
    ({**BUILD, "tool_name": "数"}, ["task_spec.tool_name"], "small letters"),
    ({**BUILD, "tool_name": "a" * 129}, ["task_spec.tool_name"], "is no id of a tool"),
    ({**BUILD, "tool_name": 7}, ["task_spec.tool_name"], "string"),
    ({**BUILD, "runtime": "java"}, ["task_spec.runtime"], "'local', 'uv' or 'docker'"),
    ({**BUILD, "exampels": []}, ["task_spec.exampels"], "Did you mean examples?"),
    ({**BUILD, "limits": {"turn": 1}}, ["task_spec.limits.turn"], "Did you mean turns?"),
    ({**BUILD, "examples": [{"input": {}}]}, ["task_spec.examples.0.expected_output"], "required"),
    ({**BUILD, "examples": [{"input": {}, "expected_output": 1, "output": 1}]}, ["task_spec.examples.0.output"], "no such field"),
    ({**BUILD, "examples": {"input": {}}}, ["task_spec.examples"], "must be a list"),
    ({**BUILD, "examples": [{"input": [1], "expected_output": 1}]}, ["task_spec.examples.0.input"], "must be an object"),
    ({**BUILD, "examples": ["x"]}, ["task_spec.examples.0"], "must be an object"),
    ({**BUILD, "limits": [1]}, ["task_spec.limits"], "must be an object"),
    ({**BUILD, "limits": {"turns": 0}}, ["task_spec.limits.turns"], "greater than or equal to 1"),
    ({**BUILD, "description": "x" * 16_001}, ["task_spec.description"], "at most 16,000 characters"),
    ({"type": "repair_tool", "tool_id": "x", "error": "x" * 16_001}, ["task_spec.error"], "at most 16,000 characters"),
    ({**BUILD, "examples": TOO_MANY}, ["task_spec.examples"], "more than 100"),
    ({**BUILD, "examples": TOO_LARGE}, ["task_spec.examples"], "at most 262,144 are taken"),
    ({**DEPLOY, "repo_url": "https://user:secret@host/x"}, ["task_spec.repo_url"], "would be kept in logs"),
    ({**DEPLOY, "repo_url": "https://ghp_abc@host/x"}, ["task_spec.repo_url"], "would be kept in logs"),
    ({**DEPLOY, "ref": "--upload-pack=x"}, ["task_spec.ref"], "no branch, tag or commit"),
    ({**DEPLOY, "operations": "getPet"}, ["task_spec.operations"], '["getPet", "pets*"]'),
    ({**DEPLOY, "hosts": "example.com"}, ["task_spec.hosts"], '["api.example.com"]'),
    ({**DEPLOY, "repo_url": "/srv/project"}, ["task_spec.repo_url"], "file:///folder"),
    ({**DEPLOY, "repo_url": "https://[x"}, ["task_spec.repo_url"], "no address"),
]


@pytest.mark.parametrize(("given", "fields", "remedy"), REFUSED)
def test_what_cannot_be_begun_is_named_with_its_remedy(given: dict[str, JsonValue], fields: list[str], remedy: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_spec(given)
    assert [fault.field for fault in refused.value.faults] == fields
    assert remedy in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "ghp_abc" not in str(refused.value)


def test_of_very_many_faults_some_are_looked_for_and_told_and_that_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def counted(wanted: str, known: Collection[str], count: int) -> tuple[str, ...]:
        searched.append(wanted)
        return nearest(wanted, known, count)

    monkeypatch.setattr("toolagent.core.task_requests.nearest", counted)
    strange: dict[str, JsonValue] = {f"field_{number:05}{'x' * 100}": 1 for number in range(20_000)}
    with pytest.raises(SpecError) as refused:
        read_spec({**BUILD, **strange, "tool_name": ""})
    assert len(refused.value.faults) == 50
    assert len(searched) < 60
    assert refused.value.faults[0].field == "task_spec.tool_name"
    assert str(refused.value).endswith(" (and at least 47 more)")
    assert len(str(refused.value)) < 1_000
    # Not one of them is looked at.
    with pytest.raises(SpecError) as refused:
        read_spec({**BUILD, "examples": MANY_STRANGE})
    assert [fault.field for fault in refused.value.faults] == ["task_spec.examples"]


@pytest.mark.parametrize("url", ["git@github.com:user/project.git", "ssh://git@host/x", "file:///srv/x"])
def test_a_user_name_that_is_no_secret_may_stand_in_an_address(url: str) -> None:
    spec = read_spec({**DEPLOY, "repo_url": url})
    assert isinstance(spec, GithubDeploy)
    assert spec.repo_url == url


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Count the words of a text, and its lines", "count_words_text_its"),
        ("I need a tool that resizes images", "resizes_images"),
        ("3 D printing", "d_printing"),
        ("编写一个 PDF 工具", "pdf"),
        ("编写一个文本摘要工具", None),
        ("a 1 2 3", None),
        ("x" * 300, "x" * 64),
    ],
)
def test_a_name_follows_from_a_description(words: str, name: str | None) -> None:
    assert tool_name_from(words) == name


def test_prose_is_a_tool_to_be_built() -> None:
    assert prose_spec(" It takes a text. ", "Count words") == BuildTool(
        tool_name="count_words", description="Count words\n\nIt takes a text."
    )
    assert prose_spec("Count words", "Count words").description == "Count words"
    assert prose_spec("Count words", "数一数").tool_name == "count_words"


@pytest.mark.parametrize(
    ("words", "field"), [("", "task_spec"), (" \n", "task_spec"), ("数一数", "task_spec.tool_name"), ("x" * 16_001, "task_spec")]
)
def test_prose_that_says_nothing_or_gives_no_name_is_refused(words: str, field: str) -> None:
    with pytest.raises(SpecError) as refused:
        prose_spec(words, words)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_ids_follow_from_keys_and_keys_are_their_callers_own() -> None:
    build, repair = read_spec(BUILD), RepairTool(tool_id="x")
    key = request_key("me", "k")
    assert key not in {request_key("you", "k"), request_key("me", "l"), ""}
    assert request_key("me", None) == ""
    assert task_id_for(build, key, 0) == task_id_for(build, key, 0)
    assert task_id_for(build, key, 0) != task_id_for(build, key, 1)
    assert (task_id_for(build, key, 0)[:7], task_id_for(repair, key, 0)[:7]) == ("create_", "repair_")


def test_two_requests_are_one_if_the_same_was_asked_for_by_the_same_caller() -> None:
    request = MakeRequest(task_id="create_00000001", spec=read_spec(BUILD), description="d")
    prints = {
        request_fingerprint(request.model_copy(update=change))
        for change in ({}, {"description": "e"}, {"key": "k"}, {"spec": read_spec(DEPLOY)}, {"caller": Caller(caller_id="me")})
    }
    assert len(prints) == 5
    assert request_fingerprint(request.model_copy(update={"task_id": "create_00000002"})) in prints
