"""The activities of a host, for its Temporal workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from activities.admit import Admit
from activities.call_tool import CallTool
from activities.control_tool import ControlTool
from activities.deliver_callback import DeliverCallback
from activities.group_sessions import GroupSessions
from activities.maintain import Maintain
from activities.settle import Settle
from activities.sync_knowhub import SyncKnowHub
from engine.calling.lane_call import LaneMaking
from engine.calling.queued_call import QueuedCall


@dataclass(frozen=True, slots=True)
class Activities:
    """Activities for calls and tools."""

    admit: Admit
    call: CallTool
    settle: Settle
    control: ControlTool
    callbacks: DeliverCallback
    lane: LaneMaking
    queued: QueuedCall
    sessions: GroupSessions
    maintain: Maintain
    knowhub: SyncKnowHub


@dataclass(frozen=True, slots=True)
class MakingActivities:
    """Activities for tasks that make tools, and for conversations, by their queue."""

    local: Sequence[Callable[..., object]]
    """Local activities, which take milliseconds."""
    chats: Sequence[Callable[..., object]]
    asked: Sequence[Callable[..., object]]
    """On the queue of all hosts: wait for the begin of a task."""
    steps: Sequence[Callable[..., object]]
