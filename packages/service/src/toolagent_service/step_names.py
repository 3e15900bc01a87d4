"""What steps are called on Temporal, where they wait, and the types of their errors."""

from toolagent.client.names import TASK_QUEUE

__all__ = [
    "ADMIT",
    "ASK_MODEL",
    "ATTEMPT_ENDED",
    "AWAIT_SLOT",
    "BRIEF_AGENT",
    "BUILD_CANDIDATE",
    "CALL",
    "CALLBACKS_QUEUE",
    "CALLBACK_NOT_TAKEN",
    "CLEAR_TASK",
    "CONTROL",
    "DELIVER_CALLBACK",
    "DIAGNOSE",
    "END_TASK",
    "ENTER_STAGE",
    "FIND_HOST",
    "HOST_LOST",
    "INSPECT_TASK",
    "LAY_OUT",
    "LOOKS_QUEUE",
    "LOOK_AT_CALL",
    "MODEL_BUSY",
    "MODEL_REFUSED",
    "NOTE_CALLBACK",
    "PLACE",
    "REGISTER_CANDIDATE",
    "SETTLE",
    "STILL_RUNNING",
    "TOOL_CONNECTION_LOST",
    "USE_TOOL",
    "VERIFY_CANDIDATE",
    "control_queue",
    "making_queue",
]

TOOL_CONNECTION_LOST = "tool_connection_lost"
"""Error type of an attempt that may be made again because the tool is repeatable."""

ATTEMPT_ENDED = "attempt_ended"
"""Error type of an attempt that was ended from outside (its worker stops, somebody pauses it), though nobody cancelled the call."""

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

LOOKS_QUEUE = f"{TASK_QUEUE}:looks"
"""Where calls of others are waited for. No bucket and no host can have this name: theirs hold no colon, or a slash."""

CALLBACKS_QUEUE = f"{TASK_QUEUE}:callbacks"
"""Where deliveries of callbacks wait: receivers that hang keep nobody else waiting."""

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


def control_queue(host: str) -> str:
    """Where a host takes orders about the tools that live on it."""
    return f"{host}/control"


def making_queue(host: str) -> str:
    """Where a host takes the steps of tasks that make tools: their folders and containers are there."""
    return f"{host}/making"
