"""The end of a workflow, by its history."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from tests.workflows.stage import Play

__all__ = ["Walk", "end_of"]

_NAMES = ("error_type", "status", "state", "end")


@dataclass(frozen=True, slots=True)
class Walk:
    """A path, and the begin of the end of its history."""

    play: Play
    ends: str


def end_of(history: WorkflowHistory) -> str:
    """The end and its reason by the result; of a batch, the end of each call. Otherwise Temporal's name of the end."""
    last = history.events[-1]
    if last.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        return EventType.Name(last.event_type).rpartition("_")[2].lower()
    (said,) = last.workflow_execution_completed_event_attributes.result.payloads
    if not said.data:  # None
        return "completed"
    result: dict[str, JsonValue] = json.loads(said.data)
    if isinstance(session := result.get("session"), dict):
        return f"{session['state']} {session['end']}"
    calls = result.get("calls") or [result]
    assert isinstance(calls, list)
    return " ".join(_words([*calls, {"end": result.get("reason")}]))


def _words(parts: Iterable[JsonValue]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Mapping):
            found = next((part[name] for name in _NAMES if isinstance(part.get(name), str)), None) or _error_of(part)
            if isinstance(found, str) and found:
                yield found


def _error_of(result: Mapping[str, JsonValue]) -> JsonValue:
    error = result.get("error")
    return error.get("type") if isinstance(error, dict) else None
