"""The progress of a long step: recorded as it changes, with a line in the log now and then."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from engine.store.tasks import TaskTable
from toolagent.contracts.making import TaskNoteKind
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.agents.coding_log import NewNote, log_line, shown_text

Progress = Callable[[str], None]

_QUIET_S = 0.5
"""Shorter steps record no progress, as with heartbeats."""

_TELL_S = 1.0
_LINE_S = 10.0
"""Between two lines, and before the first: shorter steps have lines of their stages and uses of tools."""

_LAST_S = 1.0
_LONGEST = 200
"""Characters. Secrets are masked, because the text may come from a model or a request."""


@asynccontextmanager
async def telling(tasks: TaskTable, task_id: str, attempt: str, say: Progress, *, line_s: float = _LINE_S) -> AsyncGenerator[Progress]:
    """Gives a function to call with each change. `say` gets each at once, the database at intervals.

    `attempt` is the key of this attempt, unique among all attempts at all steps.
    """
    telling = _Telling(tasks, task_id, attempt, line_s)
    task = asyncio.create_task(telling.run(), name=f"note progress of {task_id}")

    def tell(progress: str) -> None:
        shown = shown_text(progress, _LONGEST)
        say(shown)
        telling.progress = shown

    try:
        yield tell
    finally:
        telling.is_over.set()
        # A write in progress may end, but a cancelled step does not wait for a database that is away.
        await asyncio.wait([task], timeout=_LAST_S)
        task.cancel()
        # Its connection goes back to the pool before the step goes on.
        await asyncio.wait([task], timeout=_LAST_S)


class _Telling:
    def __init__(self, tasks: TaskTable, task_id: str, attempt: str, line_s: float) -> None:
        self._tasks, self._task_id, self._line_s = tasks, task_id, line_s
        self._key = f"progress:{attempt}"
        self._told = self._line = ""
        self._line_at = time.monotonic() + line_s
        self._lines = 0
        self.progress = ""
        self.is_over = asyncio.Event()

    async def run(self) -> None:
        pause = _QUIET_S
        while not await self._is_over_within(pause):
            pause = _TELL_S
            is_line = time.monotonic() >= self._line_at and self.progress != self._line
            if is_line or self.progress != self._told:
                # The next write follows soon.
                with suppress(StoreUnavailableError):
                    await self._write(self.progress, is_line=is_line)

    async def _write(self, progress: str, *, is_line: bool) -> None:
        await self._tasks.note_progress(self._task_id, progress, self._next_line(progress) if is_line else None)
        self._told = progress
        if is_line:
            self._line, self._line_at = progress, time.monotonic() + self._line_s
            self._lines += 1

    def _next_line(self, progress: str) -> NewNote:
        at = datetime.now(UTC)
        return NewNote(f"{self._key}:{self._lines}", TaskNoteKind.PROGRESS, log_line(at, f"[PROGRESS] {progress}"), None, at)

    async def _is_over_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.is_over.wait(), seconds)
        return self.is_over.is_set()
