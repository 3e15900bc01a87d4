"""Repairs from production: opens repairs of tools whose calls fail, or that do not stay up."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from engine.registry.registry import ToolRegistry
from engine.store.call_outcomes import CallOutcomes, Outcomes, kinds_of
from engine.store.production_repairs import NewRepair, ProductionRepairs, RepairHistory
from engine.store.quarantine import QuarantineTable
from engine.store.tasks import TaskTable
from engine.store.tool_alerts import ToolAlerts
from engine.tasks.subjects import repair_under_way
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.task_specs import LONGEST_WORDS, RepairTool
from toolagent.core.calls.masking import masked_text
from toolagent.core.failures import TaskConflictError
from toolagent.core.texts import well_formed
from toolagent_service.contracts.repairs import Meanwhile
from toolagent_service.making.mendable import unmendable
from toolagent_service.making.repair_rule import DAY, Due, Health, RepairRules, decide

_LATELY = timedelta(hours=1)
"""Only tools with failed calls or many alerts in this time are looked at."""

_TOLD = 3
_LONGEST_MESSAGE = 500
_NO_MODEL = "There is no model to repair it with (TOOL_AGENT_MODEL)."

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class RepairWorkflows(Protocol):
    """`toolagent.client.making.Making` is one."""

    async def start(self, request: MakeRequest) -> None:
        """Idempotent: the same request is the same task. Raises TaskConflictError, MakingUnreachableError."""
        ...


@dataclass(frozen=True, slots=True)
class RepairTables:
    """The tables that are read and written."""

    outcomes: CallOutcomes
    alerts: ToolAlerts
    quarantine: QuarantineTable
    repairs: ProductionRepairs
    registry: ToolRegistry
    tasks: TaskTable


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """`meanwhile` decides about calls of a failing version. Without `has_model` there are only alerts.

    `at_once` bounds the open repairs: a shared dependency may be down, each repair costs money, and a waiting one holds its tool.
    """

    rules: RepairRules
    meanwhile: Meanwhile = Meanwhile.REFUSE
    has_model: bool = True
    at_once: int = 2


class RepairsFromProduction:
    """Safe on several hosts at once and after a crash: a repair is recorded before its workflow is started."""

    def __init__(self, tables: RepairTables, workflows: RepairWorkflows, policy: RepairPolicy) -> None:
        self._tables, self._workflows, self._policy = tables, workflows, policy

    async def run(self) -> tuple[str, ...]:
        """One round. Returns the started repairs, in words. Raises StoreUnavailableError, MakingUnreachableError."""
        await self._tables.quarantine.forget()
        await self._tables.repairs.give_up()
        failing = await self._tables.outcomes.failing(_LATELY)
        poisoned = await self._tables.quarantine.versions()
        unwell = await self._tables.alerts.often(_LATELY, self._policy.rules.after_failures)
        for tool_id, version in sorted({*failing, *poisoned, *unwell.items()}):
            await self._decide(tool_id, version, is_poisoned=(tool_id, version) in poisoned, is_unwell=unwell.get(tool_id) == version)
        return tuple([f"repair: {request.task_id}" for request in await self._tables.repairs.unstarted() if await self._started(request)])

    async def _decide(self, tool_id: str, version: str, *, is_poisoned: bool, is_unwell: bool) -> None:
        entry = await self._tables.registry.entry(tool_id)
        if entry is None or entry.manifest.version != version or entry.manifest.status is not ToolStatus.ACTIVE:
            return  # another version has taken over
        history = await self._tables.repairs.history(tool_id)
        since = max((one.ended_at for one in history.earlier if one.ended_at is not None), default=history.now - DAY)
        foreign = unmendable(entry)
        # Each end of a server of others was told already.
        alerts = await self._alerts(entry, max(since, history.now - _LATELY)) if is_unwell and not foreign else ()
        # Read after the alerts, because alerts are recorded before outcomes.
        outcomes = await self._tables.outcomes.of(tool_id, version, since, 2 * self._policy.rules.after_failures)
        inputs = await self._tables.quarantine.of_tool(tool_id, version) if is_poisoned or alerts else ()
        poisonous = [one for one in inputs if one.quarantined_at > since]
        hindrance = foreign or ("" if self._policy.has_model else _NO_MODEL)
        health = Health(history.now, outcomes.outcomes, len(poisonous), history.earlier, hindrance, len(alerts))
        decision = decide(health, self._policy.rules)
        # A repair that a person asked for goes first.
        if isinstance(decision, Due) and await self._has_room(decision) and not await self._is_being_repaired(tool_id):
            await self._open(entry, decision, history, outcomes, alerts)

    async def _has_room(self, due: Due) -> bool:
        return bool(due.only_told) or len(await self._tables.repairs.under_way()) < self._policy.at_once

    async def _alerts(self, entry: ToolEntry, since: datetime) -> tuple[str, ...]:
        """Empty while a call is running that may have met an alert: its outcome says more."""
        tool_id, version = entry.manifest.tool_id, entry.manifest.version
        alerts = await self._tables.alerts.of(tool_id, since, 2 * self._policy.rules.after_failures)
        if alerts and await self._tables.outcomes.is_awaited(tool_id, version, since, alerts[0].at):
            return ()
        return tuple(alert.error for alert in alerts)

    async def _open(self, entry: ToolEntry, due: Due, history: RepairHistory, outcomes: Outcomes, alerts: tuple[str, ...]) -> None:
        tool_id, version = entry.manifest.tool_id, entry.manifest.version
        attempt = await self._tables.repairs.attempts(tool_id, version) + 1
        reason = _told(version, due, outcomes, alerts)
        request = None if due.only_told else _request(tool_id, version, attempt, reason)
        holds = due.holds and request is not None
        new = NewRepair(
            tool_id,
            version,
            attempt,
            reason,
            event=_alert(entry, attempt, reason, due.only_told, history, outcomes, request),
            meanwhile=self._policy.meanwhile if holds else Meanwhile.SERVE,
            # The version that a rollback would return to.
            previous=await self._tables.registry.before_active(tool_id) if holds else None,
            request=request,
        )
        if await self._tables.repairs.open(new):
            told = {"tool_id": tool_id, "version": version, "reason": reason}
            if request is None:
                _log.warning("tool_fails", **told, then=due.only_told)
            else:
                _log.warning("repair_opened", **told, task_id=request.task_id, meanwhile=new.meanwhile.value)

    async def _started(self, request: MakeRequest) -> bool:
        try:
            await self._workflows.start(request)
        except TaskConflictError:
            # Eight hex digits may collide: the next attempt has another id.
            _log.warning("repair_id_taken", task_id=request.task_id, then="it is tried again after the pause")
            await self._tables.repairs.give_up(request.task_id)
            return False
        return True

    async def _is_being_repaired(self, tool_id: str) -> bool:
        return await repair_under_way(self._tables.tasks, tool_id) is not None


def repair_task_id(tool_id: str, version: str, attempt: int) -> str:
    """The same on all hosts, and after a crash."""
    return f"repair_{hashlib.sha256(f'production/{tool_id}@{version}/{attempt}'.encode()).hexdigest()[:8]}"


def _request(tool_id: str, version: str, attempt: int, reason: str) -> MakeRequest:
    task_id = repair_task_id(tool_id, version, attempt)
    description = f"Opened by the service because version {version} fails."
    spec = RepairTool(tool_id=tool_id, error=reason[:LONGEST_WORDS], description=description)
    return MakeRequest(task_id=task_id, spec=spec, description=description)


def _told(version: str, due: Due, outcomes: Outcomes, alerts: tuple[str, ...]) -> str:
    """The reason for people and for the agent. Messages of tools are masked."""
    kinds = f" ({kinds_of(outcomes.errors)})" if outcomes.errors else ""
    said = "".join(f"\n- {message}" for message in (*_different(error.message for error in outcomes.errors), *_different(alerts)))
    return f"Version {version}: {due.reason}{kinds}.{said}"


def _different(messages: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(well_formed(masked_text(message)[:_LONGEST_MESSAGE]) for message in messages)][:_TOLD]


def _alert(
    entry: ToolEntry,
    attempt: int,
    reason: str,
    only_told: str,
    history: RepairHistory,
    outcomes: Outcomes,
    request: MakeRequest | None,
) -> Event:
    tool_id, version = entry.manifest.tool_id, entry.manifest.version
    last_healthy = outcomes.last_good_at.isoformat() if outcomes.last_good_at else None
    return Event(
        event_id=f"repair:{hashlib.sha256(f'{tool_id}@{version}/{attempt}'.encode()).hexdigest()[:32]}",
        event_type=EventType.HEALTH_ALERT,
        tool_id=tool_id,
        at=history.now,
        details={
            "tool_id": tool_id,
            "error": f"{reason}\n{only_told}".strip(),
            "last_healthy": last_healthy,
            "task_id": request.task_id if request else None,
        },
    )
