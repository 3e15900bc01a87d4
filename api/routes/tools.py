"""Tools: listed, shown, started and stopped."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from api.documentation import ONE_TOOL, UNAVAILABLE, problem_responses
from api.ports import Injected
from api.problems import ProblemKind
from api.views.found_tools import found_tool
from api.views.tools import control, formatted_tools, states_of_tools, table_of_tools, tool_detail
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.formats import FormattedTools, ToolFormat
from toolagent.contracts.http import StoppedTool, ToolDestroyed, ToolDetail, ToolListing, ToolStarted, ToolStates
from toolagent.contracts.routes import ControlAction
from toolagent.contracts.usage import ToolUsage

router = APIRouter(tags=["tools"])

_LISTED = problem_responses(ProblemKind.INVALID_REQUEST, ErrorType.UNAVAILABLE)
_USED = problem_responses(ProblemKind.INVALID_REQUEST, ErrorType.TOOL_NOT_FOUND, ErrorType.UNAVAILABLE)
_CONTROLLED = problem_responses(
    ErrorType.TOOL_NOT_FOUND,
    ErrorType.UNAVAILABLE,
    ErrorType.EXECUTION_ERROR,
    ErrorType.DEPENDENCY_ERROR,
    ErrorType.EXECUTOR_NOT_FOUND,
    ErrorType.TIMEOUT,
)


Namespace = Annotated[str | None, Query(max_length=128, description="Only tools whose ids begin with it and a colon.")]
Tag = Annotated[str | None, Query(max_length=64, description="Only tools that have this tag.")]
Form = Annotated[ToolFormat | None, Query(alias="format", description="The tools that can be called, in this form and with these names.")]

Hours = Annotated[float | None, Query(gt=0, le=87_600, description="Only calls of the last so many hours.")]


@router.get("/tools", summary="All tools, by backend runtime and group", responses=_LISTED)
async def list_tools(
    dependencies: Injected, namespace: Namespace = None, tag: Tag = None, form: Form = None
) -> ToolListing | FormattedTools:
    """`catalog_faults` has the faults of catalog files. With `format`, the answer has the form of a vendor."""
    if form is not None:
        return await formatted_tools(dependencies, form, namespace, tag)
    return await table_of_tools(dependencies, namespace, tag)


@router.get("/tools/status", summary="How every tool runs", responses=UNAVAILABLE)
async def list_states(dependencies: Injected) -> ToolStates:
    return await states_of_tools(dependencies)


@router.get("/tools/{tool_id}", summary="One tool: manifest, sources, running state", responses=ONE_TOOL)
async def get_tool(tool_id: str, dependencies: Injected) -> ToolDetail:
    return await tool_detail(dependencies, tool_id)


@router.get("/tools/{tool_id}/usage", summary="How often a tool is called, how long it takes, how often it fails", responses=_USED)
async def get_usage(tool_id: str, dependencies: Injected, hours: Hours = None) -> ToolUsage:
    """From the records of its calls, also those of lanes, batches and sessions."""
    await found_tool(dependencies, tool_id, dependencies.registry.entry)
    since = datetime.now(UTC) - timedelta(hours=hours) if hours is not None else None
    return await dependencies.usage.of_tool(tool_id, since)


@router.post("/tools/{tool_id}/start", summary="Start a tool", responses=_CONTROLLED)
async def start_tool(tool_id: str, dependencies: Injected) -> ToolStarted:
    """Answers when the tool is ready. Starting a running tool changes nothing."""
    return ToolStarted.model_validate(await control(dependencies, tool_id, ControlAction.START), from_attributes=True)


@router.post("/tools/{tool_id}/stop", summary="Stop a tool", responses=_CONTROLLED)
async def stop_tool(tool_id: str, dependencies: Injected) -> StoppedTool:
    """The next call starts it again."""
    return StoppedTool.model_validate(await control(dependencies, tool_id, ControlAction.STOP), from_attributes=True)


@router.delete("/tools/{tool_id}", summary="Stop a tool and forget it", responses=_CONTROLLED)
async def destroy_tool(tool_id: str, dependencies: Injected) -> ToolDestroyed:
    """Removes its versions, sources, routes and files in the state folder."""
    return ToolDestroyed.model_validate(await control(dependencies, tool_id, ControlAction.DESTROY), from_attributes=True)
