"""Requests to make and repair tools, over HTTP."""

import re
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from engine.store.database import Database
from engine.store.tasks import TaskTable
from tests.api.conftest import COMPRESS, COMPRESS_SOURCE, House, browse, with_doors
from tests.api.requests_for_tools import ASKED, BUILD, made
from tests.store.making import put_evidence
from toolagent.contracts.making import Evidence, MakeRequest, MakeTask
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.task_specs import TASK_ID_PATTERN, BuildTool, GithubDeploy, RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.task_requests import request_key, task_id_for
from toolagent_service.making.task_views import begun

SPEC = BuildTool(tool_name="word_counter", runtime="uv", description="Count words.")


REPAIR = "/tools/image_compress_api/repair"


async def has_files(house: House) -> None:
    """Let the local tool have an imported project."""
    await house.registry.register(COMPRESS, (COMPRESS_SOURCE.model_copy(update={"content": f"file_{'0' * 32}"}),))


def started(house: House) -> list[MakeRequest]:
    return [*house.client.making.started.values()]


async def test_a_tool_that_is_asked_for_is_a_task(house: House) -> None:
    answer = await house.http.post("/create_tool", json=ASKED)
    assert answer.status_code == 202
    body = answer.json()
    assert (body.keys(), body["status"]) == ({"task_id", "status", "message"}, "pending")
    assert answer.headers["location"] == f"/tasks/{body['task_id']}"
    [request] = started(house)
    assert (request.task_id, request.spec, request.description) == (body["task_id"], SPEC, "Count words.")
    shown = MakingTask.model_validate_json((await house.http.get(f"/tasks/{body['task_id']}")).content)
    assert (shown.status, shown.result, shown.task_spec, shown.tool_id) == (TaskState.PENDING, None, SPEC, "word_counter")


@pytest.mark.parametrize(
    ("task_spec", "spec"),
    [
        ('{"type": "build_tool", "tool_name": "x"}', BuildTool(tool_name="x", description="Count words.")),
        ("It takes a text.", BuildTool(tool_name="count_words", description="Count words.\n\nIt takes a text.")),
        (None, BuildTool(tool_name="count_words", description="Count words.")),
        (
            {"type": "github_deploy", "repo_url": "https://x/y", "tool_name": "y"},
            GithubDeploy(repo_url="https://x/y", tool_name="y", description="Count words."),
        ),
    ],
)
async def test_a_specification_is_an_object_json_text_or_prose(house: House, task_spec: JsonValue, spec: BuildTool | GithubDeploy) -> None:
    answer = await house.http.post("/create_tool", json={"description": "Count words.", "task_spec": task_spec})
    assert answer.status_code == 202
    assert [request.spec for request in started(house)] == [spec]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"description": "需要一个图片压缩工具", "task_spec": "详细任务描述..."}, "tupian_yasuo"),
        ({"description": "数一数"}, "shuyishu"),
        ({"description": "считать слова"}, "tool_ee87cd23"),
    ],
)
async def test_words_of_any_language_name_the_tool(house: House, body: dict[str, JsonValue], name: str) -> None:
    assert (await house.http.post("/create_tool", json=body)).status_code == 202
    [request] = started(house)
    assert request.spec == BuildTool(tool_name=name, description="\n\n".join(map(str, body.values())))


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"task_spec": {}}, "task_spec.type", "github_deploy"),
        ({"task_spec": {"type": "build"}}, "task_spec.type", "Did you mean build_tool?"),
        ({"task_spec": {"type": "github_deploy", "tool_name": "x"}}, "task_spec.repo_url", "missing"),
        ({"task_spec": {"type": "github_deploy", "tool_name": "x", "repo_url": "owner/x"}}, "task_spec.repo_url", "Write it whole"),
        ({"task_spec": {"type": "build_tool", "tool_name": "x"}}, "task_spec.description", "missing"),
        ({"task_spec": {**BUILD, "tool_name": "No Name", "description": "d"}}, "task_spec.tool_name", "'no_name' would do"),
        ({"task_spec": '{"type": "build_tool",\n "tool_name": }'}, "task_spec", "line 2 column"),
        ({"task_spec": '[{"type": "build_tool"}]'}, "task_spec", "list"),
        ({"task_spec": '{"a": 1, "a": 2}'}, "task_spec", "more than once"),
        ({"task_spec": 7}, "task_spec", "an object, its JSON text, or prose"),
        ({}, "task_spec", "neither a description nor a repository"),
        ({"description": "a\x00b"}, "description", "It must hold no NUL character."),
        ({"descripton": "x"}, "descripton", "There is no such field. Did you mean description?"),
        ({"wish": "x"}, "wish", "There is no such field. There are: description, task_spec, caller."),
    ],
)
async def test_what_cannot_be_begun_is_a_problem_that_names_field_and_remedy(
    house: House, body: dict[str, JsonValue], field: str, said: str
) -> None:
    answer = await house.http.post("/create_tool", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "invalid_request")
    [found] = [one for one in answer.json()["errors"] if one["field"] == field]
    assert said in found["message"]
    assert started(house) == []


@pytest.mark.promise("a-key-is-one-task")
async def test_the_same_key_is_one_task_and_another_request_under_it_is_refused(house: House) -> None:
    headers = {"Idempotency-Key": "order-17"}
    answers = [await house.http.post("/create_tool", json=ASKED, headers=headers) for _ in range(3)]
    assert {(answer.status_code, answer.json()["task_id"]) for answer in answers} == {(202, started(house)[0].task_id)}
    other = await house.http.post("/create_tool", json={**ASKED, "description": "Other."}, headers=headers)
    assert (other.status_code, other.json()["type"]) == (409, "idempotency_conflict")
    somebody_else = await house.http.post("/create_tool", json={**ASKED, "caller": {"caller_id": "you"}}, headers=headers)
    assert somebody_else.status_code == 202
    assert len(started(house)) == 2


@pytest.mark.promise("a-key-is-one-task")
@pytest.mark.parametrize("is_written", [True, False])
async def test_a_key_is_one_task_also_where_another_name_was_derived_before(house: House, is_written: bool) -> None:
    """An older version derived other names; the record is written a moment after the start."""
    body: dict[str, JsonValue] = {"description": "需要一个图片压缩工具"}
    key = request_key(None, "order-17")
    spec = BuildTool(tool_name="tu_pian_ya_suo", description="需要一个图片压缩工具")
    before = MakeRequest(task_id=task_id_for(spec, key, 0), spec=spec, description=spec.description, key=key)
    await house.client.making.start(before)
    if is_written:
        await house.tasks.create(begun(before, datetime.now(UTC)))
    answer = await house.http.post("/create_tool", json=body, headers={"Idempotency-Key": "order-17"})
    assert (answer.status_code, answer.json().get("task_id")) == (202, before.task_id)
    assert started(house) == [before]
    known = await house.tasks.get(before.task_id)
    assert known is not None
    assert known.spec == spec
    named = {**body, "task_spec": {"type": "build_tool", "tool_name": "another"}}
    assert (await house.http.post("/create_tool", json=named, headers={"Idempotency-Key": "order-17"})).status_code == 409


@pytest.mark.promise("a-key-is-one-task")
async def test_a_name_that_was_given_counts_also_where_it_is_the_one_that_would_be_derived(house: House) -> None:
    description, headers = "Count the words of a text", {"Idempotency-Key": "order-17"}
    spec: dict[str, JsonValue] = {"type": "build_tool", "tool_name": "another", "description": description}
    first = await house.http.post("/create_tool", json={"task_spec": spec, "description": description}, headers=headers)
    named = {"task_spec": {**spec, "tool_name": "count_words_text"}, "description": description}
    again = await house.http.post("/create_tool", json=named, headers=headers)
    assert (first.status_code, again.status_code) == (202, 409)


async def test_a_key_whose_id_is_somebody_elses_gets_another_id(house: House) -> None:
    key = request_key(None, "order-17")
    ids = [task_id_for(SPEC, key, attempt) for attempt in range(2)]
    await house.client.making.start(MakeRequest(task_id=ids[0], spec=SPEC, key="theirs"))
    await house.tasks.create((await made(house)).model_copy(update={"task_id": ids[0], "key": "theirs"}))
    answer = await house.http.post("/create_tool", json=ASKED, headers={"Idempotency-Key": "order-17"})
    assert (answer.status_code, answer.json()["task_id"]) == (202, ids[1])


async def test_without_a_key_every_request_is_a_task(house: House) -> None:
    ids = {(await house.http.post("/create_tool", json=ASKED)).json()["task_id"] for _ in range(3)}
    assert len(ids) == 3


async def test_while_temporal_is_away_nothing_is_left_behind_and_the_task_is_named_that_may_have_been_begun(house: House) -> None:
    house.client.making.away = True
    headers = {"Idempotency-Key": "order-17"}
    answers = [await house.http.post("/create_tool", json=ASKED, headers=each) for each in ({}, headers)]
    for answer in answers:
        assert (answer.status_code, answer.json()["type"], answer.headers["retry-after"]) == (503, "unavailable", "1")
    assert await house.tasks.page() == ()
    house.client.making.away = False
    begun = (await house.http.post("/create_tool", json=ASKED, headers=headers)).json()["task_id"]
    assert answers[1].json()["details"] == {"task_id": begun}
    assert re.fullmatch(TASK_ID_PATTERN, answers[0].json()["details"]["task_id"])


class Unwritable(TaskTable):
    """A table whose database goes away once the workflow is started."""

    async def create(self, task: MakeTask) -> MakeTask:
        raise StoreUnavailableError(task.task_id)


async def test_a_task_that_goes_on_is_taken_though_its_record_cannot_be_written(house: House, database: Database) -> None:
    async with browse(with_doors(house, tasks=Unwritable(database))) as http:
        answer = await http.post("/create_tool", json=ASKED)
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    assert [request.task_id for request in started(house)] == [answer.json()["task_id"]]


async def test_a_tool_is_repaired_with_what_is_known_of_its_trouble(stocked: House) -> None:
    body: dict[str, JsonValue] = {"error": "HTTP 503", "examples": [{"input": {}, "expected_output": 1}], "limits": {"turns": 3}}
    await has_files(stocked)
    answer = await stocked.http.post(REPAIR, json=body)
    assert (answer.status_code, answer.json()["task_id"][:7]) == (202, "repair_")
    await stocked.tasks.settle(answer.json()["task_id"], TaskState.FAILED)
    bare = await stocked.http.post(REPAIR)
    assert bare.status_code == 202
    specs = [request.spec for request in started(stocked)]
    assert [(spec.error, len(spec.examples), spec.limits.turns) for spec in specs if isinstance(spec, RepairTool)] == [
        ("HTTP 503", 1, 3),
        ("", 0, None),
    ]


async def test_a_repair_that_cannot_be_begun_is_a_problem(stocked: House) -> None:
    missing = await stocked.http.post("/tools/ecko/repair", json={})
    assert (missing.status_code, missing.json()["details"]) == (404, {"nearest": ["echo"]})
    spec: JsonValue = {"type": "repair_tool", "tool_id": "ecko"}
    assert (await stocked.http.post("/create_tool", json={"task_spec": spec})).status_code == 404
    await has_files(stocked)
    wrong = await stocked.http.post(REPAIR, json={"limits": {"turn": 1}})
    assert (wrong.status_code, [one["field"] for one in wrong.json()["errors"]]) == (422, ["limits.turn"])
    assert started(stocked) == []


@pytest.mark.parametrize(("tool_id", "remedy"), [("echo", "part of this service"), ("weather", "tell its operator")])
async def test_what_is_not_made_of_files_here_is_refused_before_there_is_a_task(stocked: House, tool_id: str, remedy: str) -> None:
    spec: JsonValue = {"type": "repair_tool", "tool_id": tool_id}
    for answer in (
        await stocked.http.post(f"/tools/{tool_id}/repair"),
        await stocked.http.post("/create_tool", json={"task_spec": spec}),
    ):
        assert (answer.status_code, answer.json()["type"]) == (409, "not_repairable")
        assert remedy in answer.json()["detail"]
    assert started(stocked) == []


async def test_a_tool_is_repaired_by_one_task_at_a_time(stocked: House) -> None:
    await has_files(stocked)
    headers = {"Idempotency-Key": "alert-17"}
    first = (await stocked.http.post(REPAIR, headers=headers)).json()["task_id"]
    for status in (TaskState.PENDING, TaskState.RUNNING):
        other = await stocked.http.post(REPAIR, json={"error": "HTTP 500"})
        assert (other.status_code, other.json()["type"], other.json()["details"]) == (409, "repair_running", {"task_id": first}), status
        again = await stocked.http.post(REPAIR, headers=headers)
        assert (again.status_code, again.json()["task_id"]) == (202, first), status
        await stocked.tasks.claim_slot(first, 1)
    await stocked.tasks.settle(first, TaskState.CANCELLED)
    assert (await stocked.http.post(REPAIR)).status_code == 202


@pytest.mark.promise("a-key-is-one-task")
async def test_a_key_is_the_same_repair_when_the_tool_is_gone(stocked: House) -> None:
    await has_files(stocked)
    headers = {"Idempotency-Key": "alert-17"}
    first = await stocked.http.post(REPAIR, headers=headers)
    await stocked.registry.destroy("image_compress_api")
    again = await stocked.http.post(REPAIR, headers=headers)
    assert (again.status_code, again.json()["task_id"]) == (202, first.json()["task_id"])
    spec: JsonValue = {"type": "repair_tool", "tool_id": "image_compress_api"}
    by_specification = await stocked.http.post("/create_tool", json={"task_spec": spec}, headers=headers)
    assert (by_specification.status_code, by_specification.json()["task_id"]) == (202, first.json()["task_id"])
    for path in (REPAIR, "/tools/No Tool/repair"):
        assert (await stocked.http.post(path)).status_code == 404


async def test_the_refusal_of_a_large_specification_is_small(house: House) -> None:
    spec: JsonValue = {**BUILD, **{f"field_{number}": 1 for number in range(5_000)}}
    answer = await house.http.post("/create_tool", json={"description": "Count.", "task_spec": spec})
    assert (answer.status_code, len(answer.json()["errors"])) == (422, 50)
    assert len(answer.content) < 20_000
    assert "more" in answer.json()["detail"]


async def test_a_rollback_returns_to_the_version_before_once(stocked: House) -> None:
    await stocked.registry.register(COMPRESS.model_copy(update={"version": "1.1.0"}), (COMPRESS_SOURCE,))
    path = "/tools/image_compress_api/rollback"
    for _ in range(2):
        answer = await stocked.http.post(path, json={"from_version": "1.1.0"})
        assert (answer.status_code, answer.json()["active_version"]) == (200, "1.0.0")
    nothing = await stocked.http.post(path)
    assert (nothing.status_code, nothing.json()["type"], nothing.json()["details"]) == (
        409,
        "no_earlier_version",
        {"versions": ["1.1.0", "1.0.0"]},
    )
    assert (await stocked.http.post("/tools/no_such/rollback")).status_code == 404
    never = await stocked.http.post(path, json={"from_version": "1.1.O"})
    assert (never.status_code, never.json()["details"]) == (404, {"versions": ["1.1.0", "1.0.0"]})


async def test_a_version_is_shown_with_its_evidence(database: Database, stocked: House) -> None:
    evidence = Evidence(task_id="create_00000001", at=datetime(2026, 11, 21, tzinfo=UTC), behaviour="verified")
    await put_evidence(database, "weather", "1.0.0", evidence)
    [version] = (await stocked.http.get("/tools/weather/versions")).json()["versions"]
    assert Evidence.model_validate(version["evidence"]) == evidence
    [version] = (await stocked.http.get("/tools/echo/versions")).json()["versions"]
    assert version["evidence"] is None
