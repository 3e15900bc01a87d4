"""The plan of an admitted call."""

from engine.calls.checks.asked import Asked, CallLimits
from toolagent_service.calls.dispatch import timeout_of
from toolagent_service.contracts.steps import CallPlan, OfSession, Placement

_LIVES, _GRACE_S = 3, 60.0
"""How often an attempt may be made, and what it takes besides starting and calling the tool (see `workflows.options`)."""


def longest_s(asked: Asked, limits: CallLimits) -> float:
    """How long the call may take from now on, with all its attempts."""
    return limits.queue_timeout_s + _LIVES * (limits.start_timeout_s + timeout_of(asked.call, asked.manifest) + _GRACE_S)


def plan_of(asked: Asked, limits: CallLimits, placement: Placement, session: OfSession | None) -> CallPlan:
    """All that the later steps know of it."""
    manifest = asked.manifest
    return CallPlan(
        call_id=asked.call_id,
        tool_id=manifest.tool_id,
        version=manifest.version,
        params=asked.params,
        fingerprint=asked.fingerprint,
        placement=placement,
        fast=False,
        repeatable=manifest.repeatable,
        timeout_s=timeout_of(asked.call, manifest),
        start_timeout_s=limits.start_timeout_s,
        queue_timeout_s=limits.queue_timeout_s,
        priority=asked.call.priority,
        caller=asked.call.caller,
        session=session,
        instead_of=asked.instead_of,
        repair=asked.repair,
        listens=asked.call.listens,
    )
