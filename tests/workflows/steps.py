"""Scripted steps of a call: activities that keep the contract of the real ones."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pydantic import JsonValue
from temporalio import activity
from temporalio.exceptions import ApplicationError

from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.core.calls.results import failed, succeeded
from toolagent_service import step_names
from toolagent_service.contracts.steps import (
    Admission,
    AdmitRequest,
    Admitted,
    Answered,
    CallPlan,
    CallRequest,
    Finished,
    Placement,
    PlaceRequest,
    SettleRequest,
)

__all__ = ["PADDING", "Deliberate", "Preceded", "Steps", "Unadmitted", "Unhurried", "Unrecorded", "cancelled", "plan_of", "settled"]

PADDING = "padding"
"""A parameter that a fast call does not answer with."""

Behaviour = Callable[[CallRequest], Awaitable[Finished]]


def plan_of(request: AdmitRequest, *, queue: str = "default", host: str | None = None, queue_timeout_s: float = 120) -> CallPlan:
    return CallPlan(
        call_id=request.call_id,
        tool_id=request.call.tool_id,
        version="1.0.0",
        params=request.call.params,
        fingerprint="f",
        placement=Placement(queue=queue, host=host),
        fast=False,
        repeatable=False,
        timeout_s=5,
        start_timeout_s=5,
        queue_timeout_s=queue_timeout_s,
    )


async def answer(request: CallRequest) -> Finished:
    return Finished(output=request.plan.params, execution_time=0.25)


async def settled(request: CallRequest) -> Finished:
    """As an attempt of a worker that records the end."""
    assert request.workflow_id == activity.info().workflow_id
    plan = request.plan
    result = succeeded(plan.call_id, plan.tool_id, None, activity.info().started_time, execution_time=0.25, metadata={})
    return Finished(output=plan.params, execution_time=0.25, settled=result)


@dataclass
class Steps:
    """The outcome of each step, and the requests."""

    fast: bool = False
    queue: str = "default"
    host: str | None = None
    elsewhere: Placement = field(default_factory=lambda: Placement(queue="default"))
    behaviour: Behaviour = answer
    queue_timeout_s: float = 120
    calls: list[CallRequest] = field(default_factory=list[CallRequest])
    placed: list[PlaceRequest] = field(default_factory=list[PlaceRequest])
    settled: list[SettleRequest] = field(default_factory=list[SettleRequest])
    called: asyncio.Event = field(default_factory=asyncio.Event)

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        if self.fast:
            output: JsonValue = {name: value for name, value in request.call.params.items() if name != PADDING}
            at = activity.info().started_time
            return Answered(result=succeeded(request.call_id, request.call.tool_id, output, at, execution_time=0.0, metadata={}))
        return Admitted(plan=plan_of(request, queue=self.queue, host=self.host, queue_timeout_s=self.queue_timeout_s))

    @activity.defn(name=step_names.PLACE)
    async def place(self, request: PlaceRequest) -> Placement:
        self.placed.append(request)
        return self.elsewhere

    @activity.defn(name=step_names.CALL)
    async def call_tool(self, request: CallRequest) -> Finished:
        self.calls.append(request)
        self.called.set()
        return await self.behaviour(request)

    @activity.defn(name=step_names.SETTLE)
    async def settle(self, request: SettleRequest) -> ToolResult:
        self.settled.append(request)
        plan, outcome = request.plan, request.outcome
        at = activity.info().started_time
        if outcome.error is not None:
            return failed(plan.call_id, plan.tool_id, outcome.error, at)
        return succeeded(plan.call_id, plan.tool_id, None, at, execution_time=outcome.execution_time, metadata={})


@dataclass
class Unhurried(Steps):
    """A fast call that runs until it is released."""

    released: asyncio.Event = field(default_factory=asyncio.Event)

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        self.called.set()
        await self.released.wait()
        at = activity.info().scheduled_time
        return Answered(result=succeeded(request.call_id, request.call.tool_id, 42, at, execution_time=0.01, metadata={"fast": True}))


@dataclass
class Deliberate(Steps):
    """An admission that waits until it is released; the call is ordinary, or has begun by then."""

    released: asyncio.Event = field(default_factory=asyncio.Event)
    is_begun: bool = False
    asked: list[AdmitRequest] = field(default_factory=list[AdmitRequest])

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        self.asked.append(request)
        self.called.set()
        await self.released.wait()
        return Admitted(plan=plan_of(request, queue=self.queue, host=self.host), is_begun=self.is_begun)


@dataclass
class Preceded(Steps):
    """Another attempt settled the call before, and its caller has the result."""

    @activity.defn(name=step_names.SETTLE)
    async def settle(self, request: SettleRequest) -> ToolResult:
        at = activity.info().scheduled_time
        return succeeded(request.plan.call_id, request.plan.tool_id, "what was told before", at, execution_time=0.0, metadata={})


@dataclass
class Unadmitted(Steps):
    """Admission fails."""

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        raise ApplicationError(f"It failed for {request.call_id}.", non_retryable=True)


@dataclass
class Unrecorded(Steps):
    """The end of the call cannot be recorded."""

    @activity.defn(name=step_names.SETTLE)
    async def settle(self, request: SettleRequest) -> ToolResult:
        raise ApplicationError(f"It failed for {request.plan.call_id}.", non_retryable=True)


def cancelled() -> Finished:
    return Finished(error=ToolError(type=ErrorType.CANCELLED, message="cancelled", details={"tool": "left_running"}))
