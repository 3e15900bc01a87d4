"""Tasks that make tools: listed, shown, cancelled, guided and followed."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest
from pydantic import JsonValue
from starlette.types import Message, Receive, Scope, Send

from api.app import create_app
from engine.store.database import Database
from engine.store.tasks import TaskTable
from tests.api.conftest import BASE_URL, House, browse, with_doors
from tests.api.requests_for_tools import ASKED, made
from tests.api.serving import reached
from toolagent.contracts.making import Evidence, Stage, TaskNote, TaskNoteKind
from toolagent.contracts.making_views import ListedTask, MakingTask, TaskListing
from toolagent.contracts.tasks import TaskState
from toolagent_service.agents.coding_log import NewNote
from toolagent_service.agents.loop import MOST_HEARD

BOUND_S = 60.0


async def shown(house: House, task_id: str) -> MakingTask:
    answer = await house.http.get(f"/tasks/{task_id}")
    assert answer.status_code == 200
    return MakingTask.model_validate_json(answer.content)


async def test_a_task_is_shown_with_its_stages_its_log_and_how_it_ended(house: House) -> None:
    task_id = (await made(house)).task_id
    await house.tasks.claim_slot(task_id, 2)
    await house.tasks.enter_stage(task_id, Stage.BUILD)
    running = await shown(house, task_id)
    assert (running.status, running.stage, [one.state for one in running.stages]) == (TaskState.RUNNING, Stage.BUILD, ["running"])
    await house.tasks.settle(task_id, TaskState.FAILED, "The index does not answer.")
    ended = await shown(house, task_id)
    assert (ended.status, ended.reason, ended.result) == (TaskState.FAILED, "The index does not answer.", "The index does not answer.")
    error, cost = (line.partition("]")[2] for line in ended.log[-2:])
    assert error.endswith(f"[TOOL_ERROR] {ended.tool_id}: The index does not answer.")
    assert cost.endswith("[COST] $0.00")


async def test_tasks_are_listed_by_pages(house: House) -> None:
    ids = [(await made(house)).task_id for _ in range(3)]
    first = TaskListing.model_validate_json((await house.http.get("/tasks?limit=2&type=build_tool&status=pending")).content)
    second = TaskListing.model_validate_json((await house.http.get(f"/tasks?limit=2&before={first.next}")).content)
    assert [one.task_id for one in (*first.tasks, *second.tasks)] == ids[::-1]
    assert (first.next, second.next) == (ids[1], None)
    assert (await house.http.get("/tasks?tool_id=other")).json()["tasks"] == []


@pytest.mark.parametrize("query", ["status=done", "type=build", "limit=0", "before=nothing", "before=create_00000000", "tool_id=A%00"])
async def test_a_filter_that_means_nothing_is_a_problem(house: House, query: str) -> None:
    answer = await house.http.get(f"/tasks?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, query.partition("=")[0])


@pytest.mark.parametrize(("query", "such"), [("before=xx", "create_a1b2c3d4"), ("tool_id=A", "word_counter")])
async def test_a_filter_of_another_form_is_told_its_form_in_words(house: House, query: str, such: str) -> None:
    message = (await house.http.get(f"/tasks?{query}")).json()["errors"][0]["message"]
    assert (such in message, "^" in message) == (True, False)


async def test_a_message_that_says_nothing_is_told_so(house: House) -> None:
    answer = await house.http.post(f"/tasks/{(await made(house)).task_id}/messages", json={"text": "  "})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "text", "message": "It must say something, and hold no NUL character."}]


@pytest.mark.parametrize("task_id", ["create_00000000", "repair_ffffffff", "create_0000000g", "create_00000000%0A", "call-12345678"])
async def test_an_unknown_task_is_a_problem_whatever_is_wanted_of_it(house: House, task_id: str) -> None:
    answers = [
        await house.http.get(f"/tasks/{task_id}"),
        await house.http.post(f"/tasks/{task_id}/cancel"),
        await house.http.post(f"/tasks/{task_id}/messages", json={"text": "x"}),
        await house.http.get(f"/tasks/{task_id}/events"),
    ]
    assert [(answer.status_code, answer.json()["type"]) for answer in answers] == [(404, "task_not_found")] * 4


async def test_a_task_at_work_is_asked_to_end(house: House) -> None:
    task_id = (await made(house)).task_id
    answer = await house.http.post(f"/tasks/{task_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    assert house.client.making.cancelled == [task_id]


async def test_a_task_that_is_asked_twice_to_end_is_asked_no_more_when_it_has(house: House) -> None:
    task_id = (await made(house)).task_id
    await house.tasks.claim_slot(task_id, 2)
    answers = [await house.http.post(f"/tasks/{task_id}/cancel") for _ in range(2)]
    assert [(answer.status_code, answer.json()["status"]) for answer in answers] == [(202, "running")] * 2
    await house.tasks.settle(task_id, TaskState.CANCELLED, "It was cancelled.")
    again = await house.http.post(f"/tasks/{task_id}/cancel")
    assert (again.status_code, again.json()["status"], again.json()["reason"]) == (200, "cancelled", "It was cancelled.")
    assert house.client.making.cancelled == [task_id] * 2


async def test_a_task_that_has_ended_stays_as_it_is(house: House) -> None:
    task_id = (await made(house)).task_id
    await house.tasks.settle(task_id, TaskState.COMPLETED, tool_ids=("word_counter",))
    answer = await house.http.post(f"/tasks/{task_id}/cancel")
    assert (answer.status_code, answer.json()["status"], answer.json()["result"]) == (200, "completed", "Registered: word_counter.")
    assert house.client.making.cancelled == []


async def test_a_task_that_nobody_works_at_ends_when_it_is_cancelled(house: House) -> None:
    task_id = (await made(house)).task_id
    house.client.making.started.clear()
    answer = await house.http.post(f"/tasks/{task_id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")


async def test_guidance_is_noted_and_handed_on_once_for_each_key(house: House) -> None:
    task_id = (await made(house)).task_id
    path = f"/tasks/{task_id}/messages"
    answers = [await house.http.post(path, json={"text": "Faster,\nplease."}, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    note = TaskNote.model_validate_json(answers[1].content)
    assert (note.position, note.kind, note.text.partition("[GUIDANCE] ")[2]) == (2, TaskNoteKind.GUIDANCE, "Faster, please.")
    other = await house.http.post(path, json={"text": "Slower."}, headers={"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["type"]) == (409, "idempotency_conflict")
    assert {said.text for _, said in house.client.making.said} == {"Faster,\nplease."}
    assert len({said.id for _, said in house.client.making.said}) == 1
    assert len(await house.notes.after(task_id)) == 2


async def test_a_task_hears_so_many_messages_and_no_more(house: House) -> None:
    task_id = (await made(house)).task_id
    path, last = f"/tasks/{task_id}/messages", {"Idempotency-Key": "last"}
    notes = [NewNote(f"guidance:{number}", TaskNoteKind.GUIDANCE, "Faster.") for number in range(MOST_HEARD - 1)]
    await house.notes.write(task_id, notes)
    answers = [await house.http.post(path, json={"text": "x"}, headers=headers) for headers in (last, {}, last)]
    assert [answer.status_code for answer in answers] == [202, 409, 202]
    assert answers[1].json()["type"] == "too_many_messages"
    assert {said.text for _, said in house.client.making.said} == {"x"}


async def test_who_does_not_know_whether_a_message_was_heard_is_told_how_to_say_it_once(house: House) -> None:
    task_id = (await made(house)).task_id
    path = f"/tasks/{task_id}/messages"
    house.client.making.away = True
    answer = await house.http.post(path, json={"text": "Faster."})
    assert (answer.status_code, answer.json()["details"]["task_id"]) == (503, task_id)
    house.client.making.away = False
    again = await house.http.post(path, json={"text": "Faster."}, headers={"Idempotency-Key": answer.json()["details"]["idempotency_key"]})
    assert again.status_code == 202
    assert len(house.client.making.said) == 1
    assert [note.kind for note in await house.notes.after(task_id)] == [TaskNoteKind.TOOL_REQUEST, TaskNoteKind.GUIDANCE]


class EndsMeanwhile(TaskTable):
    """A table in which the task ends after it was read, and before a message is written."""

    async def say(self, task_id: str, key: str, text: str, payload: JsonValue) -> TaskNote:
        await self.settle(task_id, TaskState.CANCELLED)
        return await super().say(task_id, key, text, payload)


async def test_nothing_is_said_behind_the_end_of_a_task(house: House, database: Database) -> None:
    task_id = (await made(house)).task_id
    async with browse(with_doors(house, tasks=EndsMeanwhile(database))) as http:
        answer = await http.post(f"/tasks/{task_id}/messages", json={"text": "x"})
    assert (answer.status_code, answer.json()["type"]) == (409, "task_ended")
    assert (await house.notes.after(task_id))[-1].kind is TaskNoteKind.COST
    assert house.client.making.said == []


async def test_tools_that_were_there_are_told_from_those_that_were_made(house: House) -> None:
    found, built = [(await made(house)).task_id for _ in range(2)]
    evidence = Evidence(task_id=built, at=datetime(2026, 11, 21, tzinfo=UTC))
    await house.tasks.settle(found, TaskState.COMPLETED, tool_ids=("word_counter",))
    await house.tasks.settle(built, TaskState.COMPLETED, tool_ids=("word_counter",), evidence=evidence)
    assert [(await shown(house, each)).built for each in (found, built)] == [False, True]


async def test_a_task_that_has_ended_hears_nothing(house: House) -> None:
    task_id = (await made(house)).task_id
    house.client.making.at_work.clear()
    for _ in range(2):
        answer = await house.http.post(f"/tasks/{task_id}/messages", json={"text": "x"})
        assert (answer.status_code, answer.json()["type"]) == (409, "task_ended")
        await house.tasks.settle(task_id, TaskState.FAILED)
    assert (await house.http.post(f"/tasks/{task_id}/messages", json={"text": " "})).status_code == 422


async def events(answer: httpx.Response) -> AsyncIterator[tuple[str | None, TaskNote | ListedTask]]:
    """The events with their ids."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if not line and fields.get("event") == "note":
            yield fields.get("id"), TaskNote.model_validate_json(fields["data"])
        elif not line and fields.get("event") == "task":
            yield fields.get("id"), ListedTask.model_validate_json(fields["data"])
        fields = {} if not line else fields | {name: value}


async def test_a_task_is_followed_as_it_goes_on_until_it_has_ended(house: House) -> None:
    task_id = (await made(house)).task_id
    seen: list[str] = []
    async with asyncio.timeout(BOUND_S), reached(house.dependencies) as http, http.stream("GET", f"/tasks/{task_id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for event_id, event in events(answer):
            seen.append(f"{event_id}:{event.kind.value}" if isinstance(event, TaskNote) else f"{event_id}:{event.status.value}")
            match len(seen):
                case 2:
                    await house.tasks.claim_slot(task_id, 1)
                case 3:
                    await house.notes.write(task_id, (NewNote("k", TaskNoteKind.TEXT, "漢\nline"),))
                case 4:
                    await house.tasks.settle(task_id, TaskState.COMPLETED, tool_ids=("word_counter",))
                case _:
                    pass
    begun = ["1:tool_request", "None:pending", "None:running", "2:TEXT"]
    assert seen == [*begun, "3:tool_ready", "4:DONE", "5:cost", "None:completed"]


async def test_who_comes_back_gets_what_followed_and_browsers_are_told_when_that_is_all(house: House) -> None:
    task_id = (await made(house)).task_id
    await house.notes.write(task_id, [NewNote(str(number), TaskNoteKind.TEXT, "x") for number in range(3)])
    await house.tasks.settle(task_id, TaskState.FAILED, "No.")
    everything = [*map(str, range(1, 7)), None]
    for last, ids in (("2", everything[2:]), ("0", everything), ("", everything)):
        answer = await house.http.get(f"/tasks/{task_id}/events", headers={"Last-Event-ID": last})
        assert [event_id async for event_id, _ in events(answer)] == ids
    assert (await house.http.get(f"/tasks/{task_id}/events", headers={"Last-Event-ID": "6"})).status_code == 204


async def test_an_id_that_another_task_had_is_a_problem_at_once(house: House) -> None:
    task_id = (await made(house)).task_id
    answer = await house.http.get(f"/tasks/{task_id}/events", headers={"Last-Event-ID": "99"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Last-Event-ID")


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 30])
async def test_an_id_that_no_event_had_is_a_problem(house: House, last: str) -> None:
    task_id = (await made(house)).task_id
    answer = await house.http.get(f"/tasks/{task_id}/events", headers={"Last-Event-ID": last})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Last-Event-ID")


async def test_a_silent_task_is_heard_to_be_alive(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.views.task_events.HEARTBEAT_S", 0.01)
    task_id = (await made(house)).task_id
    async with asyncio.timeout(BOUND_S), reached(house.dependencies) as http, http.stream("GET", f"/tasks/{task_id}/events") as answer:
        async for line in answer.aiter_lines():
            if line.startswith(":"):
                break


async def test_a_stream_ends_when_the_service_stops(house: House) -> None:
    task_id = (await made(house)).task_id
    app, has_begun = create_app(house.dependencies), asyncio.Event()

    async def listened(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            await send(message)
            if b"event: task" in message.get("body", b""):
                has_begun.set()

        await app(scope, receive, sent)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(listened), base_url=BASE_URL) as http, asyncio.timeout(BOUND_S):
        following = asyncio.create_task(http.get(f"/tasks/{task_id}/events"))
        # It has told how the task stands, and waits for more.
        await has_begun.wait()
        assert not following.done()
        app.state.stopping.set()
        assert (await following).status_code == 200


async def test_a_task_of_this_kind_is_not_mistaken_for_a_call(house: House) -> None:
    answer = await house.http.post("/create_tool", json=ASKED)
    assert (await house.http.get(f"/tasks/{answer.json()['task_id']}")).json()["task_spec"]["type"] == "build_tool"
