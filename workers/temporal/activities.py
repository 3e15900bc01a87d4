"""What a host does, as the workers of Temporal are given it."""

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
    """What this host does for calls and tools."""

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
    """What this host does for tasks that make tools, and for conversations, by where it is asked for."""

    local: Sequence[Callable[..., object]]
    """Steps of workflows that take milliseconds."""
    chats: Sequence[Callable[..., object]]
    asked: Sequence[Callable[..., object]]
    """On the queue of all hosts: whether a task may begin."""
    steps: Sequence[Callable[..., object]]
