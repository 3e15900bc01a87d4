"""Names of steps on Temporal, their task queues, and the types of their errors."""

from toolagent.client.names import TASK_QUEUE

TOOL_CONNECTION_LOST = "tool_connection_lost"
"""Error type of an attempt that may be repeated, because the tool is repeatable."""

ATTEMPT_ENDED = "attempt_ended"
"""Error type of an attempt that was ended from outside (its worker stops, it is paused), without a cancellation of the call."""

CALLBACK_NOT_TAKEN = "callback_not_taken"
"""Error type of a callback that the receiver did not accept. It is sent again later."""

LANE_DRAINS = "lane_drains"
"""Error type of a batch that a run of a lane refuses because it is about to continue as a new one. The batch is sent again."""

HOST_LOST = "host_lost"
"""Error type of an agent whose host, the only one with its files, does not come back."""

MODEL_BUSY = "model_busy"
"""Error type of a turn for which the provider of the model was too busy. It is repeated."""

MODEL_REFUSED = "model_refused"
"""Error type of a turn that cannot succeed until something is changed."""

STILL_RUNNING = "still_running"
"""Error type of a look at a call that still runs. Temporal looks again later."""

KNOWHUB_AWAY = "knowhub_away"
"""Error type of a synchronisation for which KnowHub could not be read."""

LOOKS_QUEUE = f"{TASK_QUEUE}:looks"
"""The queue for waiting for calls of others. No bucket or host has this name: theirs contain no colon, or a slash."""

CALLBACKS_QUEUE = f"{TASK_QUEUE}:callbacks"
"""The queue for deliveries of callbacks, so that slow receivers delay nothing else."""

MAINTAIN_QUEUE = f"{TASK_QUEUE}:maintain"
"""The queue for work that any host does for all hosts."""

CALL_LANE = "CallLane"
TAKE = "take"
"""Update of a `CallLane`: a `LaneBatch`."""

CLOSE = "close"
"""Signal to a `CallLane`: its door has closed."""

ANSWERED = "answered"
"""Signal to an `InvokeTool`: a session has made its call, and the record has the result."""

USE_SESSION = "use"
"""Signal to a `ToolGroup`: a call from outside uses the session (`SessionUse`)."""

RECORD_SESSION = "record"
"""Signal to a `ToolGroup`: write the session's row again if it is missing."""

STOP_BY = "stop_by"
"""Signal to a `ToolGroup`: a call of its stop from outside (`AdoptedCall`), which the session makes."""

ADMIT = "admit"
MAKE_BATCH = "make_batch"
JOIN = "join_call"
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
ANSWER_TURN = "answer_turn"
USE_TOOL = "use_tool"
VERIFY_CANDIDATE = "verify"
REGISTER_CANDIDATE = "register"
CLEAR_TASK = "clear_up"
END_TASK = "end_task"
DELIVER_CALLBACK = "deliver_callback"
NOTE_CALLBACK = "note_callback"
OPEN_SESSION = "open_session"
NOTE_SESSION = "note_session"
LIST_LAUNCHES = "list_launches"
PIN_VERSIONS = "pin_versions"
FIND_GROUP = "find_group"
RECALL_CHAT = "recall_chat"
BEGIN_TURN = "begin_turn"
END_TURN = "end_turn"
AWAIT_TASK = "await_task"
ANNOUNCE_TASK = "announce_task"
REST_CHAT = "rest_chat"
LIST_LIVE_HOSTS = "list_live_hosts"
MAINTAIN_HOST = "maintain_host"
MAINTAIN_SERVICE = "maintain_service"
SYNC_KNOWHUB = "sync_knowhub"


def control_queue(host: str) -> str:
    """The queue for orders to a host about the tools that live on it."""
    return f"{host}/control"


def making_queue(host: str) -> str:
    """The queue for steps of tasks that make tools on a host, which has their folders and containers."""
    return f"{host}/making"
