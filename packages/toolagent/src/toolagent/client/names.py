"""Names on Temporal, for the service, its workers and callers."""

from temporalio.common import SearchAttributeKey

__all__ = [
    "CALLBACK",
    "CALLER",
    "CHATS_QUEUE",
    "CHAT_DRAINS",
    "CHAT_FULL",
    "CODING_AGENT",
    "CONTROL_TOOL",
    "CREATE_TOOL",
    "DELIVER_CALLBACK_WORKFLOW",
    "FINGERPRINT",
    "GUIDE",
    "INVOKE_TOOL",
    "KNOWHUB_SCHEDULE",
    "MAINTAIN",
    "MAINTAIN_SCHEDULE",
    "MAKING_QUEUE",
    "NEW",
    "NEXUS_ENDPOINT",
    "NO_SLOT",
    "PROGRESS",
    "RENEW_SESSION",
    "REPAIR_TOOL",
    "RUN_IN_SESSION",
    "RUN_TOOLS",
    "SAY",
    "SEARCH_ATTRIBUTES",
    "SERVICE_AGENT",
    "SESSION",
    "SESSION_DRAINS",
    "SESSION_OVER",
    "STOP_SESSION",
    "SYNC_KNOWHUB",
    "TASK_QUEUE",
    "TASK_TYPE",
    "TOOL_GROUP",
    "TOOL_ID",
    "USE_GROUP",
    "chat_workflow",
    "coding_id",
    "searchable",
    "session_workflow",
]

TASK_QUEUE = "tool-agent"
"""The task queue of the workflows."""

CHATS_QUEUE = f"{TASK_QUEUE}:chats"
"""The task queue of conversations and their activities. A worker with free slots starts an activity eagerly."""

MAKING_QUEUE = f"{TASK_QUEUE}:making"
"""The queue on which tasks wait for permission to begin. The host that gives it runs the task."""

NEXUS_ENDPOINT = "tool-agent"
"""The default Nexus endpoint of the service."""

INVOKE_TOOL = "InvokeTool"
RUN_TOOLS = "RunTools"
CONTROL_TOOL = "ControlTool"
CREATE_TOOL = "CreateTool"
REPAIR_TOOL = "RepairTool"
CODING_AGENT = "CodingAgent"
DELIVER_CALLBACK_WORKFLOW = "DeliverCallback"
TOOL_GROUP = "ToolGroup"
USE_GROUP = "UseGroup"
SERVICE_AGENT = "ServiceAgent"
MAINTAIN = "Maintain"

MAINTAIN_SCHEDULE = "maintain"
"""The schedule that starts a `Maintain` again and again, and the beginning of their ids."""

SYNC_KNOWHUB = "SyncKnowHub"

KNOWHUB_SCHEDULE = "knowhub"
"""The schedule that starts a `SyncKnowHub` again and again, and the beginning of their ids."""

SESSION = "session"
"""Query and update of a `ToolGroup`: the current session; as an update, once it is launched or has ended."""

RUN_IN_SESSION = "run"
"""Update of a `ToolGroup`: a `SessionRun`."""

STOP_SESSION = "stop"
"""Update of a `ToolGroup`: stop it."""

RENEW_SESSION = "renew"
"""Update of a `ToolGroup`: renew its lease."""

SESSION_DRAINS = "session_drains"
"""Error type of a run that comes while the workflow of the session continues as a new run. It is sent again."""

SESSION_OVER = "session_over"
"""Error type of a run in a session that ends or has ended."""


PROGRESS = "progress"
"""Query of a `RunTools`: its calls; of a `CodingAgent`: its state (`LoopState`); of a `ServiceAgent`: its state (`ChatLife`)."""

SAY = "say"
"""Update of a `ServiceAgent`: a `ChatMessage`, answered with its `ChatReply`. The id of the update begins with that of the message."""

CHAT_DRAINS = "chat_drains"
"""Error type of a message that comes while the workflow of the chat continues as a new run. It is sent again."""

CHAT_FULL = "chat_full"
"""Error type of a message to a chat with too many waiting messages."""

GUIDE = "guide"
"""Signal to a `CreateTool`, a `RepairTool` or their `CodingAgent`: `Guidance` of a person, which is already in the log."""

FINGERPRINT = "fingerprint"
"""Memo of an `InvokeTool`, `CreateTool` or `RepairTool`: tells whether a second request under the same id is the same request."""

NEW = "new"
"""Memo of an `InvokeTool` whose id was made for it, so that the call cannot have begun elsewhere."""

CALLBACK = "callback"
"""Memo of an `InvokeTool` or `RunTools` with a callback: the origin of its URL."""

TOOL_ID = SearchAttributeKey.for_keyword("ToolId")
CALLER = SearchAttributeKey.for_keyword("Caller")
TASK_TYPE = SearchAttributeKey.for_keyword("TaskType")
CHAT_ID = SearchAttributeKey.for_keyword("ChatId")
GROUP_ID = SearchAttributeKey.for_keyword("GroupId")
AWAITING = SearchAttributeKey.for_keyword("Awaiting")
OUTCOME = SearchAttributeKey.for_keyword("Outcome")
"""How a call, a batch or a task ended. The only optional attribute: workers set it if the server has it."""
SEARCH_ATTRIBUTES = (TOOL_ID, CALLER, TASK_TYPE, CHAT_ID, GROUP_ID, AWAITING, OUTCOME)


NO_SLOT = "no_slot"
"""Error type of an attempt that did not get one of the tool's own slots in time. Nothing was sent."""


def coding_id(task_id: str) -> str:
    """The workflow id of a task's agent."""
    return f"{task_id}/coding"


def session_workflow(group_id: str, session_id: str) -> str:
    """The workflow id of a session."""
    return f"group/{group_id}/{session_id}"


def searchable(text: str) -> str:
    """The text, cut to the limit of a search attribute: 2,048 bytes of JSON, with up to 12 for a character."""
    return text[:160]


def chat_workflow(chat_id: str) -> str:
    """The workflow id of a conversation."""
    return f"chat/{chat_id}"
