"""Tasks that make or repair tools, over HTTP: start, follow, guide and cancel them."""

import time
import uuid
from collections.abc import Generator, Iterator

from pydantic import JsonValue

from toolagent.client.http_answers import (
    ContractT,
    Refused,
    ServiceError,
    Unreachable,
    events_of,
    is_away,
    is_unanswered,
)
from toolagent.client.http_paths import path_of
from toolagent.client.http_requests import Requests
from toolagent.contracts.making import TaskNote
from toolagent.contracts.making_views import ListedTask, MakingTask, TaskListing, TaskSubmitted
from toolagent.contracts.versions import ToolVersions

__all__ = ["MakingRequests"]

_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 5.0
_ASKED_AGAIN_S = 10.0
_NO_CONTENT = 204


class MakingRequests(Requests):
    """The methods of `ToolAgentHttp` for these tasks. They raise the same errors as its others.

    Starting a task and sending a message are retried for some seconds while it is unknown whether the service accepted them. An
    idempotency key, made if none is given, keeps them from happening twice.
    """

    def create_tool(self, description: str, task_spec: dict[str, JsonValue] | str | None = None, key: str | None = None) -> TaskSubmitted:
        """Have a tool made. The same idempotency key is the same task."""
        body: dict[str, JsonValue] = {"description": description, "task_spec": task_spec}
        return self._once(TaskSubmitted, "create_tool", body=body, key=key)

    def repair_tool(self, tool_id: str, wishes: dict[str, JsonValue] | None = None, key: str | None = None) -> TaskSubmitted:
        """Have a tool repaired. `wishes` may have `error`, `description`, `examples` and `limits`."""
        return self._once(TaskSubmitted, "tools", tool_id, "repair", body=wishes or {}, key=key)

    def roll_back(self, tool_id: str, from_version: str | None = None) -> ToolVersions:
        """Return to the previously active version; with `from_version` only if that one is active now."""
        return self._post(ToolVersions, "tools", tool_id, "rollback", body={"from_version": from_version})

    def making_tasks(
        self, status: str | None = None, kind: str | None = None, tool_id: str | None = None, limit: int = 50, before: str | None = None
    ) -> TaskListing:
        """The newest first."""
        return self._get(TaskListing, "tasks", status=status, type=kind, tool_id=tool_id, limit=limit, before=before)

    def making_task(self, task_id: str, patience_s: float = 0.0) -> MakingTask:
        """The task. While the service is down, the request is retried for this many seconds."""
        patience = _Patience(patience_s)
        while True:
            try:
                return self._get(MakingTask, "tasks", task_id)
            except (Unreachable, Refused) as error:
                if not is_away(error):
                    raise
                patience.sit_out(error)

    def cancel_making(self, task_id: str) -> MakingTask:
        """Cancel the task; it ends a little later and removes what it has made."""
        return self._post(MakingTask, "tasks", task_id, "cancel")

    def say(self, task_id: str, text: str, key: str | None = None) -> TaskNote:
        """Send guidance to a running task."""
        return self._once(TaskNote, "tasks", task_id, "messages", body={"text": text}, key=key)

    def task_events(self, task_id: str, after: int = 0, patience_s: float = 60.0) -> Generator[TaskNote | ListedTask]:
        """Follow the task until its end: each log line after a position, and the task after each change.

        A broken connection is resumed where it broke, unless the service is down (or answers 503) for `patience_s` seconds. Then it raises
        Unreachable or Refused; Unreachable at once if nothing has ever answered.
        """
        patience, heard, is_there = _Patience(patience_s), False, False
        while True:
            is_silent = True
            try:
                for event in self._events(task_id, after):
                    heard, is_silent = True, False
                    patience.heard()
                    after = event.position if isinstance(event, TaskNote) else after
                    yield event
                    if isinstance(event, ListedTask) and event.has_ended:
                        return
                if is_silent and (task := self.making_task(task_id)).has_ended:
                    # All events were sent before, except the task itself, if the connection broke after the last note.
                    if heard:
                        yield task
                    return
                patience.pause()
            except (Unreachable, Refused) as error:
                # A refusal is an answer too.
                is_there = is_there or heard or isinstance(error, Refused)
                if not is_there or not is_away(error):
                    raise
                patience.sit_out(error)

    def _once(self, contract: type[ContractT], *segments: str, body: dict[str, JsonValue], key: str | None) -> ContractT:
        headers, patience = {"Idempotency-Key": key or uuid.uuid4().hex}, _Patience(_ASKED_AGAIN_S)
        unanswered: Unreachable | Refused | None = None
        while True:
            try:
                return self._post(contract, *segments, body=body, headers=headers)
            except (Unreachable, Refused) as error:
                unanswered = error if is_unanswered(error) else unanswered
                if unanswered is None or not is_away(error):
                    raise
                patience.sit_out(unanswered)

    def _events(self, task_id: str, after: int) -> Iterator[TaskNote | ListedTask]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(after)} if after else {})
        with self._streamed(path_of("tasks", task_id, "events"), headers) as answer:
            if answer.status_code != _NO_CONTENT:
                yield from events_of(answer, {"note": TaskNote, "task": ListedTask})


class _Patience:
    """Waits for a service that is down, for a limited time."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s, self._pause_s = longest_s, _PAUSE_S
        self._since: float | None = None

    def heard(self) -> None:
        """The service answered."""
        self._since, self._pause_s = None, _PAUSE_S

    def sit_out(self, error: ServiceError) -> None:
        """Pause before a retry. Raises the error if the service was down for too long."""
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since >= self._longest_s:
            raise error
        self.pause()

    def pause(self) -> None:
        """Each pause is longer than the one before."""
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
