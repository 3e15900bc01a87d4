"""A call that has ended, and what follows from it: the effects, each a file of this folder."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.calls.settled import SettledCalls
from engine.calls.usual_durations import UsualDurations
from engine.store.calls import CallTable
from engine.store.claims import Claim
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import CallRecord

__all__ = ["Effect", "Ended", "Places"]


@dataclass(frozen=True, slots=True)
class Places:
    """Where effects write, and who is told."""

    calls: CallTable
    settled: SettledCalls
    durations: UsualDurations = field(default_factory=UsualDurations)


@dataclass(frozen=True, slots=True)
class Ended:
    """`record` is what is known of the call besides its result; `was_started`: its request was sent."""

    record: CallRecord
    result: ToolResult
    was_started: bool
    claim: Claim | None = None
    """Of who settles it, where he has one."""


Run: TypeAlias = Callable[[Ended, Places], Awaitable[Ended]]
"""Gives it on, with the result that stands. Done again it changes nothing: a step may be lost in the middle."""


@dataclass(frozen=True, slots=True)
class Effect:
    """`does` says it in words."""

    name: str
    does: str
    run: Run
