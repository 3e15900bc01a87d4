"""Follows a task that makes or repairs a tool: its log line by line, with stage, time and cost.

Ctrl-C leaves it running.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from toolagent.cli.failures import Interrupted
from toolagent.cli.follow import Changes
from toolagent.cli.render import cell, show_note
from toolagent.client.http import Refused, ToolAgentHttp, Unreachable
from toolagent.client.http_answers import is_away
from toolagent.contracts.making import TaskNote
from toolagent.contracts.making_views import ListedTask, MakingTask

__all__ = ["elapsed", "follow_making", "how_to_follow", "spent"]

_PATIENCE_S = 60.0


def follow_making(service: ToolAgentHttp, task_id: str) -> MakingTask:
    """The task once it has ended. Raises Interrupted on Ctrl-C; the task goes on."""
    try:
        with _screen() as screen:
            for event in service.task_events(task_id):
                screen.show(event)
        return service.making_task(task_id, _PATIENCE_S)
    except (Unreachable, Refused) as error:
        if is_away(error):
            show_note(f"The task goes on without us: {how_to_follow(task_id)}")
        raise
    except KeyboardInterrupt as error:
        message = f"{task_id} goes on. See how it ends: {how_to_follow(task_id)}   End it: toolagent task {task_id} --cancel"
        raise Interrupted(message) from error


def how_to_follow(task_id: str) -> str:
    return f"toolagent task {task_id} --follow"


def elapsed(task: ListedTask) -> str:
    """The running time, such as `1:02`; empty while the task waits."""
    if task.started_at is None:
        return ""
    seconds = max(int(((task.ended_at or datetime.now(UTC)) - task.started_at).total_seconds()), 0)
    hours, rest = divmod(seconds, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def spent(task: ListedTask) -> str:
    """The cost of its model, such as `$0.0123`, and the number of turns of unknown price."""
    if not task.unpriced_turns:
        return f"${task.cost_usd:.4f}"
    known = f"${task.cost_usd:.4f} and " if task.cost_usd else ""
    return f"{known}{task.unpriced_turns} turn{'s' if task.unpriced_turns > 1 else ''} of unknown price"


@contextmanager
def _screen() -> Generator["_Lines | _Bottom"]:
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines()
        return
    bottom = _Bottom(console)
    with Live(bottom, console=console, refresh_per_second=4, transient=True):
        yield bottom


class _Lines:
    """Prints the log and each change of state as plain lines."""

    def __init__(self) -> None:
        self._states = Changes()

    def show(self, event: TaskNote | ListedTask) -> None:
        if isinstance(event, TaskNote):
            show_note(event.text)
        else:
            self._states.show(_state(event))


class _Bottom:
    """Shows the scrolling log, and the state and running time of the task on the last line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._task: ListedTask | None = None
        self._spinner = Spinner("dots")

    def show(self, event: TaskNote | ListedTask) -> None:
        if isinstance(event, TaskNote):
            self._console.print(cell(event.text, "bold" if event.kind == "stage" else ""), soft_wrap=True)
        else:
            self._task = event

    def __rich__(self) -> Text:
        frame = self._spinner.render(time.monotonic())
        marker = frame if isinstance(frame, Text) else Text()
        return Text(" ").join((marker, Text("…") if self._task is None else cell(_line(self._task))))


def _state(task: ListedTask) -> str:
    return f"{task.task_id} {task.status.value}"


def _line(task: ListedTask) -> str:
    parts = (_state(task), task.stage.value if task.stage else "", elapsed(task), spent(task), task.progress)
    return " · ".join(filter(None, parts))
