"""What things are called on Temporal: defined once, used by services, workers and callers."""

from temporalio.common import SearchAttributeKey

__all__ = [
    "ADMIT",
    "ATTEMPT_ENDED",
    "CALL",
    "CALLBACK",
    "CALLBACKS_QUEUE",
    "CALLBACK_NOT_TAKEN",
    "CALLER",
    "CONTROL",
    "CONTROL_TOOL",
    "DELIVER_CALLBACK",
    "DELIVER_CALLBACK_WORKFLOW",
    "FINGERPRINT",
    "INVOKE_TOOL",
    "LOOKS_QUEUE",
    "LOOK_AT_CALL",
    "NOTE_CALLBACK",
    "NO_SLOT",
    "PLACE",
    "PROGRESS",
    "RUN_TOOLS",
    "SEARCH_ATTRIBUTES",
    "SETTLE",
    "STILL_RUNNING",
    "TASK_QUEUE",
    "TASK_TYPE",
    "TOOL_CONNECTION_LOST",
    "TOOL_ID",
    "control_queue",
]

TASK_QUEUE = "tool-agent"
"""Where the workflows are."""

LOOKS_QUEUE = f"{TASK_QUEUE}:looks"
"""Where calls of others are waited for. No bucket and no host can have this name: theirs hold no colon, or a slash."""

CALLBACKS_QUEUE = f"{TASK_QUEUE}:callbacks"
"""Where deliveries of callbacks wait: receivers that hang keep nobody else waiting."""

INVOKE_TOOL = "InvokeTool"
RUN_TOOLS = "RunTools"
CONTROL_TOOL = "ControlTool"
DELIVER_CALLBACK_WORKFLOW = "DeliverCallback"

ADMIT = "admit"
PLACE = "place"
CALL = "call_tool"
SETTLE = "settle"
CONTROL = "control_tool"
LOOK_AT_CALL = "look_at_call"
DELIVER_CALLBACK = "deliver_callback"
NOTE_CALLBACK = "note_callback"

PROGRESS = "progress"
"""Query of a `RunTools`: its calls as they are now."""

FINGERPRINT = "fingerprint"
"""Memo of an `InvokeTool`: tells whether a second call under the same key is the same call."""

CALLBACK = "callback"
"""Memo of an `InvokeTool` or `RunTools` whose end somebody wants to be told of: where that leads to."""

TOOL_ID = SearchAttributeKey.for_keyword("ToolId")
CALLER = SearchAttributeKey.for_keyword("Caller")
TASK_TYPE = SearchAttributeKey.for_keyword("TaskType")
CHAT_ID = SearchAttributeKey.for_keyword("ChatId")
GROUP_ID = SearchAttributeKey.for_keyword("GroupId")
AWAITING = SearchAttributeKey.for_keyword("Awaiting")
SEARCH_ATTRIBUTES = (TOOL_ID, CALLER, TASK_TYPE, CHAT_ID, GROUP_ID, AWAITING)

TOOL_CONNECTION_LOST = "tool_connection_lost"
"""Error type of an attempt that may be made again because the tool is repeatable."""

ATTEMPT_ENDED = "attempt_ended"
"""Error type of an attempt that was ended from outside (its worker stops, somebody pauses it), though nobody cancelled the call."""

NO_SLOT = "no_slot"
"""Error type of an attempt that did not get one of the tool's own slots in time; nothing was sent."""

CALLBACK_NOT_TAKEN = "callback_not_taken"
"""Error type of a post that the receiver did not take; it is sent again later."""

STILL_RUNNING = "still_running"
"""Error type of a look at a call that is waited for and goes on; Temporal looks again later."""


def control_queue(host: str) -> str:
    """Where a host takes orders about the tools that live on it."""
    return f"{host}/control"
