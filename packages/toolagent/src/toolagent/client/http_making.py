"""Tasks that make or repair tools, over HTTP: begun, followed, spoken to and cancelled."""

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from urllib.parse import quote, urlencode

import httpx
from httpx_sse import EventSource, SSEError
from pydantic import JsonValue, ValidationError

from toolagent.client.http_answers import UnexpectedAnswer, Unreachable, parsed, require_success
from toolagent.contracts.making import TaskNote
from toolagent.contracts.making_views import ListedTask, MakingTask, TaskListing, TaskSubmitted
from toolagent.contracts.versions import ToolVersions

__all__ = ["MakingRequests"]

_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 5.0
_NO_CONTENT = 204


class MakingRequests(ABC):
    """What `ToolAgentHttp` can ask about such tasks. Raises as its other methods do."""

    def create_tool(self, description: str, task_spec: dict[str, JsonValue] | str | None = None, key: str | None = None) -> TaskSubmitted:
        """Have a tool made; the same idempotency key is the same task."""
        body: dict[str, JsonValue] = {"description": description, "task_spec": task_spec}
        return parsed(TaskSubmitted, self._ask("POST", "/create_tool", body, headers=_keyed(key)))

    def repair_tool(self, tool_id: str, wishes: dict[str, JsonValue] | None = None, key: str | None = None) -> TaskSubmitted:
        """Have a tool repaired. `wishes` may have `error`, `description`, `examples` and `limits`."""
        return parsed(TaskSubmitted, self._ask("POST", f"/tools/{_quoted(tool_id)}/repair", wishes or {}, headers=_keyed(key)))

    def roll_back(self, tool_id: str, from_version: str | None = None) -> ToolVersions:
        """Return to the version that was active before; with `from_version` only if that is the active one."""
        return parsed(ToolVersions, self._ask("POST", f"/tools/{_quoted(tool_id)}/rollback", {"from_version": from_version}))

    def making_tasks(
        self, status: str | None = None, kind: str | None = None, tool_id: str | None = None, limit: int = 50, before: str | None = None
    ) -> TaskListing:
        """The newest first."""
        asked = {"status": status, "type": kind, "tool_id": tool_id, "limit": str(limit), "before": before}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return parsed(TaskListing, self._ask("GET", f"/tasks?{query}"))

    def making_task(self, task_id: str) -> MakingTask:
        return parsed(MakingTask, self._ask("GET", f"/tasks/{_quoted(task_id)}"))

    def cancel_making(self, task_id: str) -> MakingTask:
        """Ask for it to end; it does a little later, and takes away what it has made."""
        return parsed(MakingTask, self._ask("POST", f"/tasks/{_quoted(task_id)}/cancel"))

    def say(self, task_id: str, text: str, key: str | None = None) -> TaskNote:
        """Guidance for a task at work."""
        return parsed(TaskNote, self._ask("POST", f"/tasks/{_quoted(task_id)}/messages", {"text": text}, headers=_keyed(key)))

    def task_events(self, task_id: str, after: int = 0, patience_s: float = 60.0) -> Generator[TaskNote | ListedTask]:
        """The log after a position, line by line as it happens, and the task whenever it has changed, until it has ended.

        A connection that breaks is made again, and goes on where it broke, for as long as the service is away for less than `patience_s`
        seconds. Raises Unreachable after that, or when there is nobody at all.
        """
        away_since: float | None = None
        pause, heard = _PAUSE_S, False
        while True:
            is_silent = True
            try:
                for event in self._events(task_id, after):
                    away_since, pause, heard, is_silent = None, _PAUSE_S, True, False
                    after = event.position if isinstance(event, TaskNote) else after
                    yield event
                    if isinstance(event, ListedTask) and event.has_ended:
                        return
                if is_silent and (task := self.making_task(task_id)).has_ended:
                    # All of it had been sent before, but for this, if a connection broke after the last note.
                    if heard:
                        yield task
                    return
            except Unreachable:
                away_since = away_since or time.monotonic()
                if not heard or time.monotonic() - away_since > patience_s:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _events(self, task_id: str, after: int) -> Iterator[TaskNote | ListedTask]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(after)} if after else {})
        with self._streamed(f"/tasks/{_quoted(task_id)}/events", headers) as answer:
            if not answer.is_success:
                answer.read()
                require_success(answer)
            if answer.status_code == _NO_CONTENT:
                return
            try:
                yield from _read_events(answer)
            except (ValidationError, SSEError) as error:
                raise UnexpectedAnswer(answer) from error

    @abstractmethod
    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, JsonValue] | None = None,
        *,
        unbounded: bool = False,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response: ...

    @abstractmethod
    def _streamed(self, path: str, headers: dict[str, str]) -> AbstractContextManager[httpx.Response]: ...


def _read_events(answer: httpx.Response) -> Iterator[TaskNote | ListedTask]:
    """The kinds that are not known are left out."""
    for event in EventSource(answer).iter_sse():
        if event.event == "note":
            yield TaskNote.model_validate_json(event.data)
        elif event.event == "task":
            yield ListedTask.model_validate_json(event.data)


def _keyed(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Idempotency-Key": key}


def _quoted(identifier: str) -> str:
    """One path segment; dots alone would walk up the path."""
    return quote(identifier, safe=":") if identifier.strip(".") else quote(identifier.replace(".", "%2E"))
