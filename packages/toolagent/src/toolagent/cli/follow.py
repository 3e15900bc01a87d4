"""Follows a task until it ends; Ctrl-C cancels it."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console

from toolagent.cli.failures import Interrupted
from toolagent.cli.interrupts import CtrlC
from toolagent.cli.render import cell, show_note
from toolagent.client.http import ToolAgentHttp, Unreachable
from toolagent.contracts.tasks import TaskState, TaskView

__all__ = ["Changes", "follow", "has_ended"]

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_CANCEL_GRACE_S = 15.0


Progress = Callable[[str], None]


class Changes:
    """Writes lines to stderr, without repetitions in a row."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, line: str) -> None:
        if line != self._last:
            self._last = line
            show_note(line)


def has_ended(task: TaskView) -> bool:
    return task.status in {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED}


def follow(service: ToolAgentHttp, task_id: str, ctrl_c: CtrlC) -> TaskView:
    """The task once it has ended. Raises Interrupted after Ctrl-C, when the service was asked to cancel the task."""
    with _progress(task_id) as progress:
        try:
            task = _watch(service, task_id, progress, ctrl_c, lambda: ctrl_c.is_pressed)
            return task if has_ended(task) else _cancelled(service, task_id, progress, ctrl_c)
        except Unreachable:
            show_note(f"The task goes on: toolagent task {task_id} --follow")
            raise
        except KeyboardInterrupt as error:
            raise Interrupted(f"Left {task_id}; see how it ends: toolagent task {task_id} --follow") from error


def _watch(service: ToolAgentHttp, task_id: str, progress: Progress, ctrl_c: CtrlC, is_enough: Callable[[], bool]) -> TaskView:
    pause = _FIRST_PAUSE_S
    while not has_ended(task := service.task(task_id)) and not is_enough():
        progress(f"{task.task_id} {task.status.value}{': ' + task.progress if task.progress else ''}")
        ctrl_c.pause(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
    return task


def _cancelled(service: ToolAgentHttp, task_id: str, progress: Progress, ctrl_c: CtrlC) -> NoReturn:
    show_note(f"Asking the service to cancel {task_id} (Ctrl-C again to leave at once).", "yellow")
    service.cancel(task_id)
    until = time.monotonic() + _CANCEL_GRACE_S
    task = _watch(service, task_id, progress, ctrl_c, lambda: time.monotonic() > until)
    if has_ended(task):
        raise Interrupted(f"{task_id} ended: {task.status.value}.")
    raise Interrupted(f"{task_id} was asked to cancel and has not ended yet: toolagent task {task_id} --follow")


@contextmanager
def _progress(task_id: str) -> Generator[Progress, None, None]:
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(cell(f"{task_id} …")) as spinner:
            yield lambda line: spinner.update(cell(line))
    else:
        yield Changes().show
