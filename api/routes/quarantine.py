"""Inputs that a tool is not called with any more."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.documentation import problem_responses
from api.forms import INPUT_HASH
from api.ports import Injected
from api.problems import ProblemKind
from api.views.found_tools import found_tool
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.quarantine import LiftedQuarantine, Quarantine

router = APIRouter(tags=["tools"])

_ONE_TOOL = problem_responses(ErrorType.TOOL_NOT_FOUND, ProblemKind.INVALID_REQUEST, ErrorType.UNAVAILABLE)


@router.get("/tools/{tool_id}/quarantine", summary="Inputs that a tool is not asked any more", responses=_ONE_TOOL)
async def list_quarantine(tool_id: str, dependencies: Injected) -> Quarantine:
    """Inputs of all versions, the newest first. The tool's process ended twice during a call with these parameters."""
    await found_tool(dependencies, tool_id, dependencies.registry.get)
    return Quarantine(inputs=await dependencies.quarantine.of_tool(tool_id))


@router.delete("/tools/{tool_id}/quarantine", summary="Let a tool be asked them again", responses=_ONE_TOOL)
async def lift_quarantine(
    tool_id: str,
    dependencies: Injected,
    given: Annotated[str | None, Query(alias="input", pattern=INPUT_HASH, description="Only this one; without it, all.")] = None,
) -> LiftedQuarantine:
    """An input that ends the process again twice is quarantined again."""
    await found_tool(dependencies, tool_id, dependencies.registry.get)
    return LiftedQuarantine(lifted=await dependencies.quarantine.lift(tool_id, given))
