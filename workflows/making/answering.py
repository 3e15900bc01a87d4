"""Finds out by calls, before anything is built, whether an existing tool does what is asked for."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from temporalio import workflow

from toolagent.client.child import call_tool
from toolagent.contracts.calls import ToolCall
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.tasks import TaskState
from toolagent.core.catalog.expectations import unexpected
from toolagent_service.contracts.making_steps import EndStep, ExistingTool, Inspected
from toolagent_service.making.task_reasons import there_already

_CALL_S = 10.0
"""The time of one call: a guess is not worth more."""

_ALL = timedelta(seconds=30)
"""The time of all calls, with starting tools and waiting for slots."""

_LAST = 5
"""The priority of these calls, below calls whose result is wanted."""


async def answered(request: MakeRequest, found: Inspected) -> EndStep | None:
    """The end of a task for which there is a tool already; None if a tool must be made."""
    if found.answered_by is not None:
        tool_ids = found.tool_ids or (found.answered_by,)
        return _end(request, tool_ids, there_already(found.answered_by, tool_ids))
    if not found.takers:
        return None
    trying = asyncio.create_task(_first_that_passes(request, found.takers, workflow.now() + _ALL))
    try:
        await workflow.wait([trying], timeout=_ALL.total_seconds())
    finally:
        # A tool that is being installed may take long to end. Its call is settled without us.
        trying.cancel()
    tool = trying.result() if trying.done() else None
    return _end(request, (tool.tool_id,), _reason(tool, len(request.spec.examples))) if tool else None


async def _first_that_passes(request: MakeRequest, existing: Sequence[ExistingTool], until: datetime) -> ExistingTool | None:
    for tool in existing:
        if await _passes(request, tool, until):
            return tool
    return None


async def _passes(request: MakeRequest, tool: ExistingTool, until: datetime) -> bool:
    """Whether the tool gives the expected output for all examples, in time."""
    caller = request.caller.model_copy(update={"workflow_id": request.task_id})
    for example in request.spec.examples:
        # A cancellation that comes while a call begins is lost.
        if workflow.now() >= until:
            return False
        call = ToolCall(tool_id=tool.tool_id, version=tool.version, params=example.input, timeout_s=_CALL_S, priority=_LAST, caller=caller)
        result = await call_tool(call)
        if result.status != "success" or result.is_reference or any(unexpected(example.expected_output, result.result)):
            return False
    return True


def _end(request: MakeRequest, tool_ids: tuple[str, ...], reason: str) -> EndStep:
    return EndStep(request=request, status=TaskState.COMPLETED, reason=reason, tool_ids=tool_ids)


def _reason(tool: ExistingTool, examples: int) -> str:
    passed = "it passed the example" if examples == 1 else f"it passed {examples} of {examples} examples"
    return f"{tool.tool_id!r} (version {tool.version}) does that already: {passed}. Nothing was built."
