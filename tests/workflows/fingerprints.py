"""The commands of a workflow, in order: names and types, no times."""

import difflib
import json
from collections.abc import Mapping, Sequence

from google.protobuf.message import Message
from pydantic import JsonValue
from temporalio.api.enums.v1 import EventType, ParentClosePolicy
from temporalio.api.history.v1 import HistoryEvent, MarkerRecordedEventAttributes
from temporalio.client import WorkflowHistory

__all__ = ["Fingerprints", "difference", "fingerprint"]

Fingerprints = Mapping[str, Sequence[str]]

_OF_A_COMMAND = "workflow_task_completed_event_id"
"""Every event that a command of the workflow makes names the workflow task it came with."""

_ANSWERS = frozenset({EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED})
"""These name it too, and are what the server found."""


def fingerprint(history: WorkflowHistory) -> tuple[str, ...]:
    """One line for each command, such as `activity_task_scheduled call_tool`."""
    return tuple(line for event in history.events for line in _lines(event))


def difference(committed: Fingerprints, found: Fingerprints) -> str:
    """A readable diff; empty if there is none."""
    before, after = _text(committed), _text(found)
    return "\n".join(difflib.unified_diff(before, after, "committed", "found", lineterm="", n=8))


def _lines(event: HistoryEvent) -> Sequence[str]:
    attributes: Message = getattr(event, event.WhichOneof("attributes") or "")
    if event.event_type in _ANSWERS or _OF_A_COMMAND not in attributes.DESCRIPTOR.fields_by_name:
        return ()
    kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
    return (f"{kind} {_subject(event)}".strip(),)


def _subject(event: HistoryEvent) -> str:
    """The subject of the event, if it names one."""
    match event.event_type:
        case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            return event.activity_task_scheduled_event_attributes.activity_type.name
        case EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            child = event.start_child_workflow_execution_initiated_event_attributes
            return f"{child.workflow_type.name} {ParentClosePolicy.Name(child.parent_close_policy).lower()}"
        case EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
            upsert = event.upsert_workflow_search_attributes_event_attributes
            return " ".join(sorted(upsert.search_attributes.indexed_fields))
        case EventType.EVENT_TYPE_MARKER_RECORDED:
            return _marked(event.marker_recorded_event_attributes)
        case _:
            return ""


def _marked(marker: MarkerRecordedEventAttributes) -> str:
    """The type of a local activity, or the name of a patch."""
    told: list[JsonValue] = [json.loads(one.data) for name in marker.details for one in marker.details[name].payloads if one.data]
    named = [one.get("activity_type") or one.get("id") for one in told if isinstance(one, dict)]
    return " ".join((marker.marker_name, *[one for one in named if isinstance(one, str)][:1]))


def _text(fingerprints: Fingerprints) -> list[str]:
    return [line for name in sorted(fingerprints) for line in (f"{name}:", *(f"  {each}" for each in fingerprints[name]))]
