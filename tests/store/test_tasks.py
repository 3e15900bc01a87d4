"""The table of tasks."""

import asyncio

import pytest
from pydantic import JsonValue
from sqlalchemy import update

from engine.store import tables
from engine.store.database import Database
from engine.store.task_announcements import requested
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import Ending, TaskTable
from tests.store.making import AT, BUILD, task
from toolagent.contracts.making import CheckResult, Evidence, Stage, TaskNoteKind
from toolagent.contracts.task_specs import GithubDeploy, RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import TaskConflictError, TaskEndedError, UnknownTaskError
from toolagent_service.agents.coding_log import NewNote

EVIDENCE = Evidence(task_id="create_00000001", at=AT, checks=(CheckResult(check="health", passed=False, details="503\x00"),))


async def test_a_task_is_kept_as_it_was_asked_for(database: Database) -> None:
    tasks = TaskTable(database)
    assert await tasks.create(task()) == task()
    assert await tasks.get("create_00000001") == task()
    assert await tasks.get("create_00000002") is None


@pytest.mark.promise("a-key-is-one-task")
async def test_the_same_request_again_is_the_same_task_and_another_one_is_refused(database: Database) -> None:
    tasks = TaskTable(database)
    await tasks.create(task())
    assert await tasks.create(task(later_s=99)) == task()
    for change in ({"spec": BUILD.model_copy(update={"description": "other"})}, {"description": "other"}, {"key": "other"}):
        with pytest.raises(TaskConflictError):
            await tasks.create(task().model_copy(update=change))
    assert await tasks.get("create_00000001") == task()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (RepairTool(tool_id="reckoner", error="HTTP 500"), "reckoner: HTTP 500"),
        (RepairTool(tool_id="reckoner", error="HTTP 500", description=" "), "reckoner: HTTP 500"),
        (RepairTool(tool_id="reckoner"), "reckoner: repair"),
        (GithubDeploy(repo_url="https://x/y", tool_name="y"), "y: https://x/y"),
    ],
)
def test_a_request_without_words_says_what_is_known_of_it(spec: RepairTool | GithubDeploy, said: str) -> None:
    assert requested(task(spec=spec).model_copy(update={"description": ""})).text.endswith(f"[TOOL_REQUEST] {said}")


async def test_of_two_requests_for_one_id_at_once_one_stands(database: Database) -> None:
    tasks = TaskTable(database)
    wanted = [task().model_copy(update={"description": str(number)}) for number in range(4)]
    outcomes = await asyncio.gather(*(tasks.create(one) for one in wanted), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["MakeTask", *["TaskConflictError"] * 3]


async def test_tasks_are_listed_newest_first_by_pages_and_what_they_are(database: Database) -> None:
    tasks = TaskTable(database)
    specs = (BUILD, GithubDeploy(repo_url="https://x/y", tool_name="y"), RepairTool(tool_id="y"), BUILD, BUILD)
    # Two of them at the same moment.
    made = [await tasks.create(task(number, spec, later_s=min(number, 4))) for number, spec in enumerate(specs, start=1)]
    ids = [one.task_id for one in reversed(made)]
    assert [one.task_id for one in await tasks.page()] == ids
    seen, before = list[str](), None
    while page := await tasks.page(limit=2, before=before):
        seen += [one.task_id for one in page]
        before = seen[-1]
    assert seen == ids
    assert await tasks.page(before="create_ffffffff") == ()
    assert [one.task_id for one in await tasks.page(spec_type="github_deploy")] == [made[1].task_id]
    assert [one.task_id for one in await tasks.page(tool_id="y")] == [made[2].task_id, made[1].task_id]
    await tasks.settle(made[0].task_id, TaskState.FAILED, "No.")
    assert [one.task_id for one in await tasks.page(status=TaskState.FAILED)] == [made[0].task_id]
    assert await tasks.unended() == tuple(one.task_id for one in made[1:])


async def test_a_task_goes_from_stage_to_stage_and_back_and_its_log_says_so(database: Database) -> None:
    tasks, notes = TaskTable(database), TaskNoteTable(database)
    await tasks.create(task())
    for stage in (Stage.BUILD, Stage.BUILD, Stage.VERIFY):
        await tasks.enter_stage("create_00000001", stage)
    await tasks.enter_stage("create_00000001", Stage.BUILD, "failed")
    settled = await tasks.settle("create_00000001", TaskState.CANCELLED)
    assert [(one.stage, one.state) for one in settled.stages] == [
        (Stage.BUILD, "done"),
        (Stage.VERIFY, "failed"),
        (Stage.BUILD, "cancelled"),
    ]
    assert all(one.ended_at is not None for one in settled.stages)
    staged = [note.text for note in await notes.after("create_00000001") if note.kind is TaskNoteKind.STAGE]
    said = [text.partition("[STAGE] ")[2].split()[:2] for text in staged]
    assert said == [
        ["build", "begins"],
        ["build", "done"],
        ["verify", "begins"],
        ["verify", "failed"],
        ["build", "begins"],
        ["build", "cancelled"],
    ]


@pytest.mark.promise("tasks-end")
async def test_the_first_end_of_a_task_stands_with_all_that_belongs_to_it(database: Database) -> None:
    tasks, notes = TaskTable(database), TaskNoteTable(database)
    await tasks.create(task())
    await tasks.claim_slot("create_00000001", 1)
    first = await tasks.settle("create_00000001", TaskState.COMPLETED, tool_ids=("word_counter",), evidence=EVIDENCE)
    later = await tasks.settle("create_00000001", TaskState.FAILED, "Late.")
    assert first == later == await tasks.get("create_00000001")
    assert (first.status, first.tool_ids, first.evidence, first.reason) == (TaskState.COMPLETED, ("word_counter",), EVIDENCE, "")
    kinds = [note.kind for note in await notes.after("create_00000001")]
    assert kinds == [TaskNoteKind.TOOL_REQUEST, TaskNoteKind.TOOL_READY, TaskNoteKind.DONE, TaskNoteKind.COST]


async def test_what_is_asked_for_and_what_becomes_of_it_are_events(database: Database) -> None:
    tasks, notes, spec = TaskTable(database), TaskNoteTable(database), BUILD.model_dump(mode="json")
    ends: tuple[tuple[int, Ending], ...] = ((1, TaskState.COMPLETED), (2, TaskState.FAILED))
    for number, status in ends:
        for _ in range(2):  # a second telling is no second event
            await tasks.create(task(number))
        await tasks.settle(task(number).task_id, status, "So it is.", tool_ids=("word_counter", "word_counter_more"))
    made, failed = [await notes.after(task(number).task_id) for number in (1, 2)]
    request: JsonValue = {"task_spec": spec, "task_id": "create_00000001", "description": "words\N{CHECK MARK}", "reference_files": []}
    ready = {"tool_id": "word_counter", "result": "So it is.", "task_id": "create_00000001"}
    assert [(note.kind.value, note.payload) for note in made[:3]] == [
        ("tool_request", request),
        ("tool_ready", ready),
        ("tool_ready", ready | {"tool_id": "word_counter_more"}),
    ]
    error = {"tool_id": "word_counter", "error": "So it is.", "task_id": "create_00000002"}
    assert [(note.kind.value, note.payload) for note in failed[1:]] == [
        ("tool_error", error),
        ("cost", {"task_tokens": 0, "task_cost_usd": 0.0}),
    ]
    assert " ERROR: [TOOL_ERROR] word_counter: So it is." in failed[1].text


async def test_what_has_ended_goes_no_further(database: Database) -> None:
    tasks = TaskTable(database)
    await tasks.create(task())
    ended = await tasks.settle("create_00000001", TaskState.FAILED, "It was\x00 wrong.")
    for step in (tasks.enter_stage("create_00000001", Stage.PLAN), tasks.claim_slot("create_00000001", 2)):
        with pytest.raises(TaskEndedError):
            await step
    for line in (None, NewNote("p", TaskNoteKind.PROGRESS, "[PROGRESS] busy")):
        await tasks.note_progress("create_00000001", "busy", line)
    assert TaskNoteKind.PROGRESS not in [note.kind for note in await TaskNoteTable(database).after("create_00000001")]
    assert await tasks.get("create_00000001") == ended


async def test_nobody_can_work_at_a_task_that_is_not_there(database: Database) -> None:
    tasks = TaskTable(database)
    for step in (
        tasks.enter_stage("create_00000009", Stage.PLAN),
        tasks.claim_slot("create_00000009", 2),
        tasks.settle("create_00000009", TaskState.FAILED),
    ):
        with pytest.raises(UnknownTaskError):
            await step


async def test_progress_is_of_a_stage(database: Database) -> None:
    tasks = TaskTable(database)
    await tasks.create(task())
    await tasks.note_progress("create_00000001", "installs numpy")
    found = await tasks.get("create_00000001")
    assert found is not None
    assert found.progress == "installs numpy"
    line = NewNote("p", TaskNoteKind.PROGRESS, "[PROGRESS] installs numpy")
    await tasks.note_progress("create_00000001", "installs scipy", line)
    assert (await TaskNoteTable(database).tail("create_00000001", 1))[0].kind is TaskNoteKind.PROGRESS
    await tasks.enter_stage("create_00000001", Stage.PLAN)
    found = await tasks.get("create_00000001")
    assert found is not None
    assert found.progress == ""


async def test_what_is_listed_of_a_task_is_told_without_reading_what_was_asked_for(database: Database) -> None:
    tasks = TaskTable(database)
    await tasks.create(task())
    await tasks.enter_stage("create_00000001", Stage.BUILD)
    async with database.write() as connection:
        await connection.execute(update(tables.tasks).values(spec="no JSON", caller="neither", unpriced_turns=2))
    listed = await tasks.listed("create_00000001")
    assert listed is not None
    assert (listed.type, listed.tool_id, listed.stage, listed.unpriced_turns) == ("build_tool", "word_counter", Stage.BUILD, 2)
    assert await tasks.page() == (listed,)
    assert await tasks.listed("create_00000002") is None


async def test_what_is_said_to_a_task_stands_once_before_its_end_or_not_at_all(database: Database) -> None:
    tasks = TaskTable(database)
    with pytest.raises(UnknownTaskError):
        await tasks.say("create_00000001", "k", "[GUIDANCE] x", None)
    await tasks.create(task())
    first = await tasks.say("create_00000001", "k", "[GUIDANCE] x", {"text": "x"})
    assert await tasks.say("create_00000001", "k", "[GUIDANCE] y", {"text": "y"}) == first
    assert (first.kind, first.payload) == (TaskNoteKind.GUIDANCE, {"text": "x"})
    await tasks.settle("create_00000001", TaskState.FAILED, "No.")
    before = await TaskNoteTable(database).after("create_00000001")
    with pytest.raises(TaskEndedError):
        await tasks.say("create_00000001", "late", "[GUIDANCE] x", None)
    assert await TaskNoteTable(database).after("create_00000001") == before
