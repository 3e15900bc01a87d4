"""The activities of a host, for its Temporal workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engine.calling.lane_call import LaneMaking
from engine.calling.queued_call import QueuedCall

Steps: TypeAlias = Sequence[Callable[..., object]]


@dataclass(frozen=True, slots=True)
class Activities:
    """Activities for calls and tools, by their queue, and the parts that make calls."""

    local: Steps
    call: Steps
    callbacks: Steps
    control: Steps
    service: Steps
    lane: LaneMaking
    queued: QueuedCall


@dataclass(frozen=True, slots=True)
class MakingActivities:
    """Activities for tasks that make tools, and for conversations, by their queue."""

    local: Steps
    """Local activities, which take milliseconds."""
    chats: Steps
    asked: Steps
    """On the queue of all hosts: wait for the begin of a task."""
    steps: Steps
