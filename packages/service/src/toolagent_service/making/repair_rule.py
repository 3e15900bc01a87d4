"""When failing calls start a repair: a pure rule over the outcomes of calls and earlier repairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RepairRules:
    """A repair needs `after_failures` in twice as many latest calls. The pause doubles with each in a day. `per_day` 0: only alerts."""

    after_failures: int = 5
    pause_s: float = 1_800.0
    per_day: int = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call that the tool answered, or failed by its own fault. `input` distinguishes parameters."""

    input: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier repair of the tool, or an alert instead."""

    opened_at: datetime
    ended_at: datetime | None
    is_repair: bool = True


@dataclass(frozen=True, slots=True)
class Health:
    """`outcomes` of the active version since the last repair, and `earlier` repairs of the tool: each the newest first.

    `poisonous`: inputs quarantined since then. `alerts`: how often its process recently ended by itself, or failed its checks.
    `hindrance`: why the tool cannot be repaired here, if so.
    All times are by one clock.
    """

    now: datetime
    outcomes: Sequence[Outcome] = ()
    poisonous: int = 0
    earlier: Sequence[Earlier] = ()
    hindrance: str = ""
    alerts: int = 0


@dataclass(frozen=True, slots=True)
class Well:
    """No repair is needed."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A repair has to wait. `until` None: until the running repair ends."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A repair is due. `holds`: the version fails for all inputs, not only for some. `only_told`: why there is only an alert."""

    reason: str
    holds: bool
    only_told: str = ""


Decision: TypeAlias = Well | Waits | Due


def decide(health: Health, rules: RepairRules) -> Decision:
    failing = _failing(health.outcomes, rules.after_failures)
    reason = failing or _poisoned(health.poisonous) or _unwell(health.alerts, rules.after_failures)
    if not reason:
        return Well()
    if any(one.ended_at is None for one in health.earlier):
        return Waits(reason)
    # A start in the future counts too: a clock was set back.
    of_today = [one for one in health.earlier if one.opened_at > health.now - DAY]
    ends = max((one.ended_at for one in health.earlier if one.ended_at is not None), default=None)
    if ends is not None and of_today and health.now < (until := ends + _pause(len(of_today), rules)):
        return Waits(reason, until)
    return Due(reason, holds=bool(failing), only_told=health.hindrance or _limit(of_today, rules))


def _failing(outcomes: Sequence[Outcome], after: int) -> str:
    """Why the tool counts as failing; empty if it does not. If its newest call succeeded, it may have recovered."""
    newest = outcomes[: 2 * after]
    failed = [one for one in newest if one.failed]
    if not newest or not newest[0].failed:
        return ""
    # If the tool answers other inputs, a caller that repeats a bad one must not block it for all.
    counted = len(failed) if len(failed) == len(newest) else len({one.input for one in failed})
    return f"{len(failed)} of its last {len(newest)} calls failed" if counted >= after else ""


def _poisoned(inputs: int) -> str:
    return f"{inputs} input{'s' if inputs > 1 else ''} that ended its process again and again" if inputs else ""


def _unwell(alerts: int, after: int) -> str:
    """Alerts do not block calls. For a tool without calls, they are the only sign."""
    return f"its process ended by itself, or failed its checks, {alerts} times lately" if alerts >= after else ""


def _pause(times: int, rules: RepairRules) -> timedelta:
    """The pause doubles, up to a day."""
    return timedelta(seconds=min(rules.pause_s * 2 ** min(times - 1, 16), DAY.total_seconds()))


def _limit(of_today: Sequence[Earlier], rules: RepairRules) -> str:
    if rules.per_day == 0:
        return "Repairs from production are switched off (TOOL_AGENT_REPAIRS_PER_DAY)."
    if sum(one.is_repair for one in of_today) < rules.per_day:
        return ""
    return f"It was repaired {rules.per_day} times within a day (TOOL_AGENT_REPAIRS_PER_DAY)."
