"""Conversion between rows of the table `tasks` and contracts."""

import json
from collections.abc import Sequence

from pydantic import JsonValue, TypeAdapter
from sqlalchemy import RowMapping

from engine.store.clock import timestamp
from engine.store.tables import tasks
from toolagent.contracts.calls import Caller
from toolagent.contracts.contract import Contract
from toolagent.contracts.making import MakeTask, Stage, StageView, Tried
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.tasks import TaskState
from toolagent.core.texts import well_formed

_STAGES = TypeAdapter(tuple[StageView, ...])
_TRIED = TypeAdapter(tuple[Tried, ...])

LISTED = tuple(tasks.c[name] for name in ListedTask.model_fields)
"""The columns of a `ListedTask`."""


def task_row(task: MakeTask) -> dict[str, object]:
    """The row of a new task."""
    return {
        "task_id": task.task_id,
        "type": task.spec.type,
        "tool_id": task.tool_id,
        "status": task.status.value,
        # ASCII escapes: databases take neither NUL nor lone surrogates.
        "spec": json.dumps(task.spec.model_dump(mode="json")),
        "description": well_formed(task.description),
        "caller": task.caller.model_dump_json(),
        "request_key": task.key,
        "tool_ids": json.dumps(task.tool_ids),
        "stage": task.stage.value if task.stage else None,
        "stages": json_of(task.stages),
        "progress": well_formed(task.progress),
        "reason": well_formed(task.reason),
        "evidence": task.evidence.model_dump_json() if task.evidence else None,
        "tried": json_of(task.tried) if task.tried else None,
        "cost_usd": task.cost_usd,
        "tokens": task.tokens,
        "unpriced_turns": task.unpriced_turns,
        "created_at": timestamp(task.created_at),
        "started_at": timestamp(task.started_at) if task.started_at else None,
        "ended_at": timestamp(task.ended_at) if task.ended_at else None,
    }


def task_of(row: RowMapping) -> MakeTask:
    spec: JsonValue = json.loads(row["spec"])
    evidence: JsonValue = json.loads(row["evidence"]) if row["evidence"] else None
    return MakeTask.model_validate(
        {
            **row,
            "status": TaskState(row["status"]),
            "spec": spec,
            "tool_ids": json.loads(row["tool_ids"]),
            "stage": Stage(row["stage"]) if row["stage"] else None,
            "stages": stages_of(row["stages"]),
            "caller": Caller.model_validate_json(row["caller"]),
            "evidence": evidence,
            "tried": _TRIED.validate_json(row["tried"]) if row["tried"] else (),
            "key": row["request_key"],
        }
    )


def listed_of(row: RowMapping) -> ListedTask:
    return ListedTask.model_validate(
        {**row, "status": TaskState(row["status"]), "stage": Stage(row["stage"]) if row["stage"] else None},
    )


def stages_of(text: str) -> tuple[StageView, ...]:
    return _STAGES.validate_json(text)


def json_of(values: Sequence[Contract]) -> str:
    return json.dumps([value.model_dump(mode="json") for value in values])


def is_same_request(one: MakeTask, other: MakeTask) -> bool:
    """Whether both ask for the same. Older rows have the description only in their specification."""
    described = [well_formed(task.description or task.spec.description) for task in (one, other)]
    return (one.spec, described[0], one.key) == (other.spec, described[1], other.key)
