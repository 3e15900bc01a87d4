"""What things are called on Temporal: defined once, used by services, workers and callers."""

from temporalio.common import SearchAttributeKey

__all__ = [
    "ADMIT",
    "ASK_MODEL",
    "ATTEMPT_ENDED",
    "AWAIT_SLOT",
    "BRIEF_AGENT",
    "BUILD_CANDIDATE",
    "CALL",
    "CALLBACK",
    "CALLBACKS_QUEUE",
    "CALLBACK_NOT_TAKEN",
    "CALLER",
    "CLEAR_TASK",
    "CODING_AGENT",
    "CONTROL",
    "CONTROL_TOOL",
    "CREATE_TOOL",
    "DELIVER_CALLBACK",
    "DELIVER_CALLBACK_WORKFLOW",
    "DIAGNOSE",
    "END_TASK",
    "ENTER_STAGE",
    "FIND_HOST",
    "FINGERPRINT",
    "GUIDE",
    "HOST_LOST",
    "INSPECT_TASK",
    "INVOKE_TOOL",
    "LAY_OUT",
    "LOOKS_QUEUE",
    "LOOK_AT_CALL",
    "MAKING_QUEUE",
    "MODEL_BUSY",
    "MODEL_REFUSED",
    "NOTE_CALLBACK",
    "NO_SLOT",
    "PLACE",
    "PROGRESS",
    "REGISTER_CANDIDATE",
    "REPAIR_TOOL",
    "RUN_TOOLS",
    "SEARCH_ATTRIBUTES",
    "SETTLE",
    "STILL_RUNNING",
    "TASK_QUEUE",
    "TASK_TYPE",
    "TOOL_CONNECTION_LOST",
    "TOOL_ID",
    "USE_TOOL",
    "VERIFY_CANDIDATE",
    "coding_id",
    "control_queue",
    "making_queue",
]

TASK_QUEUE = "tool-agent"
"""Where the workflows are."""

LOOKS_QUEUE = f"{TASK_QUEUE}:looks"
"""Where calls of others are waited for. No bucket and no host can have this name: theirs hold no colon, or a slash."""

CALLBACKS_QUEUE = f"{TASK_QUEUE}:callbacks"
"""Where deliveries of callbacks wait: receivers that hang keep nobody else waiting."""

MAKING_QUEUE = f"{TASK_QUEUE}:making"
"""Where tasks wait for leave to begin; the host that gives it is the one they are done on."""

INVOKE_TOOL = "InvokeTool"
RUN_TOOLS = "RunTools"
CONTROL_TOOL = "ControlTool"
CREATE_TOOL = "CreateTool"
REPAIR_TOOL = "RepairTool"
CODING_AGENT = "CodingAgent"
DELIVER_CALLBACK_WORKFLOW = "DeliverCallback"

ADMIT = "admit"
PLACE = "place"
CALL = "call_tool"
SETTLE = "settle"
CONTROL = "control_tool"
LOOK_AT_CALL = "look_at_call"
AWAIT_SLOT = "await_slot"
FIND_HOST = "find_host"
ENTER_STAGE = "enter_stage"
INSPECT_TASK = "inspect"
DIAGNOSE = "diagnose"
LAY_OUT = "lay_out"
BUILD_CANDIDATE = "build"
BRIEF_AGENT = "brief_agent"
ASK_MODEL = "ask_model"
USE_TOOL = "use_tool"
VERIFY_CANDIDATE = "verify"
REGISTER_CANDIDATE = "register"
CLEAR_TASK = "clear_up"
END_TASK = "end_task"
DELIVER_CALLBACK = "deliver_callback"
NOTE_CALLBACK = "note_callback"

PROGRESS = "progress"
"""Query of a `RunTools`: its calls as they are now; of a `CodingAgent`: its state (`LoopState`)."""

GUIDE = "guide"
"""Signal to a `CreateTool`, a `RepairTool` or their `CodingAgent`: what a person says to it (`Guidance`); its log has that already."""

FINGERPRINT = "fingerprint"
"""Memo of an `InvokeTool`, `CreateTool` or `RepairTool`: tells whether a second request under the same id is the same request."""

CALLBACK = "callback"
"""Memo of an `InvokeTool` or `RunTools` whose end somebody wants to be told of: where that leads to."""

TOOL_ID = SearchAttributeKey.for_keyword("ToolId")
CALLER = SearchAttributeKey.for_keyword("Caller")
TASK_TYPE = SearchAttributeKey.for_keyword("TaskType")
CHAT_ID = SearchAttributeKey.for_keyword("ChatId")
GROUP_ID = SearchAttributeKey.for_keyword("GroupId")
AWAITING = SearchAttributeKey.for_keyword("Awaiting")
OUTCOME = SearchAttributeKey.for_keyword("Outcome")
"""How a call, a batch or a task ended. The only one that we can do without: workers set it where the server has it."""
SEARCH_ATTRIBUTES = (TOOL_ID, CALLER, TASK_TYPE, CHAT_ID, GROUP_ID, AWAITING, OUTCOME)

TOOL_CONNECTION_LOST = "tool_connection_lost"
"""Error type of an attempt that may be made again because the tool is repeatable."""

ATTEMPT_ENDED = "attempt_ended"
"""Error type of an attempt that was ended from outside (its worker stops, somebody pauses it), though nobody cancelled the call."""

NO_SLOT = "no_slot"
"""Error type of an attempt that did not get one of the tool's own slots in time; nothing was sent."""

CALLBACK_NOT_TAKEN = "callback_not_taken"
"""Error type of a post that the receiver did not take; it is sent again later."""

HOST_LOST = "host_lost"
"""Error type of an agent whose host does not come back; its files are there alone."""

MODEL_BUSY = "model_busy"
"""Error type of a turn that the model's provider had no time for; it is asked again."""

MODEL_REFUSED = "model_refused"
"""Error type of a turn that will not be had until somebody changes something."""

STILL_RUNNING = "still_running"
"""Error type of a look at a call that is waited for and goes on; Temporal looks again later."""


def control_queue(host: str) -> str:
    """Where a host takes orders about the tools that live on it."""
    return f"{host}/control"


def making_queue(host: str) -> str:
    """Where a host takes the steps of tasks that make tools: their folders and containers are there."""
    return f"{host}/making"


def coding_id(task_id: str) -> str:
    """The workflow of a task's agent."""
    return f"{task_id}/coding"
