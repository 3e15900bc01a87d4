"""A task is followed over HTTP to its end, wherever connections break."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx
import pytest

from toolagent.client.http_answers import Refused
from toolagent.client.http_making import MakingRequests
from toolagent.contracts.contract import Contract
from toolagent.contracts.http import Problem
from toolagent.contracts.making import TaskNote, TaskNoteKind
from toolagent.contracts.making_views import MakingTask, TaskSubmitted
from toolagent.contracts.task_specs import BuildTool
from toolagent.contracts.tasks import TaskState

AT = datetime(2026, 11, 21, tzinfo=UTC)
TAKEN = TaskSubmitted(task_id="create_00000001", status=TaskState.PENDING, message="")
NOTE = TaskNote(task_id="create_00000001", position=1, at=AT, kind=TaskNoteKind.TEXT, text="x")
ENDED = MakingTask.model_validate(
    dict.fromkeys(MakingTask.model_fields)
    | {"task_id": NOTE.task_id, "status": TaskState.FAILED, "type": "build_tool", "tool_id": "t", "description": "", "progress": ""}
    | {
        "reason": "No.",
        "cost_usd": 0.0,
        "tokens": 0,
        "created_at": AT,
        "ended_at": AT,
        "task_spec": BuildTool(tool_name="t", description="d"),
    }
    | {"tool_ids": (), "built": False, "unpriced_turns": 0, "stages": (), "log": (), "tried": ()}
)


AWAY = Problem(type="unavailable", title="Unavailable", status=503, detail="The database does not answer now; ask again.")


def problem(method: str, path: str) -> httpx.Response:
    request, headers = httpx.Request(method, f"http://127.0.0.1{path}"), {"content-type": "application/problem+json"}
    return httpx.Response(503, text=AWAY.model_dump_json(), headers=headers, request=request)


class Service(MakingRequests):
    """Each connection sends these events and breaks, or is refused (503); after that there are no more events (204). The task has ended.

    `aways` is how often other requests fail.
    """

    def __init__(self, *connections: Sequence[tuple[str, Contract]] | None, aways: int = 0) -> None:
        self._connections, self._aways = [*connections], aways
        self.keys: list[str] = []

    def _ask(
        self, method: str, path: str, body: object = None, *, unbounded: bool = False, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        self.keys += [headers["Idempotency-Key"]] if headers else []
        if self._aways:
            self._aways -= 1
            return problem(method, path)
        if method == "POST":
            return httpx.Response(202, text=TAKEN.model_dump_json(), request=httpx.Request(method, path))
        assert (method, path, body, unbounded, headers) == ("GET", f"/tasks/{NOTE.task_id}", None, False, None)
        return httpx.Response(200, text=ENDED.model_dump_json(), request=httpx.Request(method, path))

    @contextmanager
    def _streamed(self, path: str, headers: dict[str, str], method: str = "GET", body: object = None) -> Generator[httpx.Response]:
        assert (method, path, body, headers["Accept"]) == ("GET", f"/tasks/{NOTE.task_id}/events", None, "text/event-stream")
        if not self._connections:
            yield httpx.Response(204)
            return
        sent = self._connections.pop(0)
        if sent is None:
            yield problem("GET", path)
            return
        text = "".join(f"event: {kind}\ndata: {event.model_dump_json()}\n\n" for kind, event in sent)
        yield httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolagent.client.http_making._PAUSE_S", 0.0)
    monkeypatch.setattr("toolagent.client.http_making._ASKED_AGAIN_S", 20.0)


def test_a_connection_that_breaks_after_the_last_note_does_not_hide_the_end() -> None:
    assert [*Service([("note", NOTE)]).task_events(NOTE.task_id)] == [NOTE, ENDED]


def test_who_has_seen_all_of_it_is_told_nothing() -> None:
    assert [*Service().task_events(NOTE.task_id, after=1)] == []


def test_a_service_that_cannot_answer_is_away_and_no_end_of_following() -> None:
    assert [*Service([("note", NOTE)], None, None, aways=2).task_events(NOTE.task_id)] == [NOTE, ENDED]
    assert [*Service(None, [("note", NOTE), ("task", ENDED)]).task_events(NOTE.task_id)][:1] == [NOTE]


def test_who_has_seen_all_of_it_is_told_nothing_by_a_service_that_could_not_answer_at_first() -> None:
    assert [*Service(None).task_events(NOTE.task_id, after=1)] == []


def test_patience_with_a_service_that_cannot_answer_ends() -> None:
    with pytest.raises(Refused):
        list(Service([("note", NOTE)], None).task_events(NOTE.task_id, patience_s=0.0))
    with pytest.raises(Refused):
        Service(aways=1).making_task(NOTE.task_id)
    assert Service(aways=2).making_task(NOTE.task_id, 20.0) == ENDED


@pytest.mark.promise("a-key-is-one-task")
@pytest.mark.parametrize("key", [None, "order-17"])
def test_what_may_have_been_taken_is_asked_for_again_as_the_same_request(key: str | None) -> None:
    service = Service(aways=2)
    assert service.create_tool("Count.", key=key) == TAKEN
    assert len(service.keys) == 3
    assert len({*service.keys}) == 1
    assert key in {None, service.keys[0]}


def test_two_requests_without_a_key_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    for _ in range(2):
        service.repair_tool("t")
    assert len({*service.keys}) == 2
    monkeypatch.setattr("toolagent.client.http_making._ASKED_AGAIN_S", 0.0)
    with pytest.raises(Refused):
        Service(aways=1).create_tool("Count.")
