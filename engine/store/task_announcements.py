"""Notes in the log of a task about its request and its end."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import JsonValue

from toolagent.contracts.making import MakeTask, TaskNoteKind, Tried
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool
from toolagent_service.agents.coding_log import NewNote, cost_line, done_line, log_line
from toolagent_service.making.task_reasons import tried_line


def requested(task: MakeTask) -> NewNote:
    """The note `tool_request`: a tool was asked for."""
    payload: JsonValue = {
        "task_spec": task.spec.model_dump(mode="json"),
        "task_id": task.task_id,
        "description": task.description,
        "reference_files": [],
    }
    text = log_line(task.created_at, f"[TOOL_REQUEST] {task.tool_id}: {_wanted(task)}")
    return NewNote("request", TaskNoteKind.TOOL_REQUEST, text, payload, task.created_at)


def ended(task: MakeTask, *, well: bool, reason: str, tool_ids: Sequence[str], cost_usd: float | None, at: datetime) -> tuple[NewNote, ...]:
    """`tool_ready` for each callable tool, or `tool_error`; then the duration and the cost (None: unknown)."""
    if well:
        announced = [_ready(task, tool_id, reason, at) for tool_id in tool_ids]
        seconds = (at - (task.started_at or at)).total_seconds()
        announced.append(NewNote("done", TaskNoteKind.DONE, done_line(at, seconds), None, at))
    else:
        announced = [_error(task, reason, at)]
    payload: JsonValue = {"task_tokens": task.tokens, "task_cost_usd": cost_usd}
    return (*announced, NewNote("cost", TaskNoteKind.COST, cost_line(at, cost_usd), payload, at))


def tried_notes(tried: Sequence[Tried], at: datetime) -> tuple[NewNote, ...]:
    """A note for each attempt to build a tool of a repository, and its outcome."""
    return tuple(
        NewNote(f"tried:{number}", TaskNoteKind.BUILD, log_line(at, f"[TRIED] {tried_line(one)}"), one.model_dump(mode="json"), at)
        for number, one in enumerate(tried, start=1)
    )


def _wanted(task: MakeTask) -> str:
    """The caller's description, or a default."""
    said = task.description.strip() or task.spec.description.strip()
    match task.spec:
        case RepairTool(error=error):
            return said or error.strip() or "repair"
        case GithubDeploy(repo_url=repo_url):
            return said or repo_url
        case BuildTool():
            return said or "build"


def _ready(task: MakeTask, tool_id: str, reason: str, at: datetime) -> NewNote:
    payload: JsonValue = {"tool_id": tool_id, "result": reason, "task_id": task.task_id}
    return NewNote(f"ready:{tool_id}", TaskNoteKind.TOOL_READY, log_line(at, f"[TOOL_READY] {tool_id}: {reason}"), payload, at)


def _error(task: MakeTask, reason: str, at: datetime) -> NewNote:
    payload: JsonValue = {"tool_id": task.tool_id, "error": reason, "task_id": task.task_id}
    text = log_line(at, f"[TOOL_ERROR] {task.tool_id}: {reason}", is_error=True)
    return NewNote("error", TaskNoteKind.TOOL_ERROR, text, payload, at)
