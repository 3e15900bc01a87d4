"""A task is followed over HTTP until it has ended, wherever connections break."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx
import pytest

from toolagent.client.http_making import MakingRequests
from toolagent.contracts.contract import Contract
from toolagent.contracts.making import TaskNote, TaskNoteKind
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.task_specs import BuildTool
from toolagent.contracts.tasks import TaskState

AT = datetime(2026, 11, 21, tzinfo=UTC)
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
    | {"tool_ids": (), "stages": (), "log": ()}
)


class Service(MakingRequests):
    """Each connection gives these events and breaks; then there are no more of them (204). The task has ended."""

    def __init__(self, *connections: Sequence[tuple[str, Contract]]) -> None:
        self._connections = [*connections]

    def _ask(
        self, method: str, path: str, body: object = None, *, unbounded: bool = False, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        assert (method, path, body, unbounded, headers) == ("GET", f"/tasks/{NOTE.task_id}", None, False, None)
        return httpx.Response(200, text=ENDED.model_dump_json(), request=httpx.Request(method, path))

    @contextmanager
    def _streamed(self, path: str, headers: dict[str, str]) -> Generator[httpx.Response]:
        assert (path, headers["Accept"]) == (f"/tasks/{NOTE.task_id}/events", "text/event-stream")
        if not self._connections:
            yield httpx.Response(204)
            return
        text = "".join(f"event: {kind}\ndata: {event.model_dump_json()}\n\n" for kind, event in self._connections.pop(0))
        yield httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolagent.client.http_making._PAUSE_S", 0.0)


def test_a_connection_that_breaks_after_the_last_note_does_not_hide_the_end() -> None:
    assert [*Service([("note", NOTE)]).task_events(NOTE.task_id)] == [NOTE, ENDED]


def test_who_has_seen_all_of_it_is_told_nothing() -> None:
    assert [*Service().task_events(NOTE.task_id, after=1)] == []
