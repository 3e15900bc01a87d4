"""The versions of a tool, and the active one."""

from fastapi import APIRouter

from api.documentation import problem_responses
from api.ports import Injected
from api.views.versions import activate, deactivate, versions_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.versions import ToolVersions

router = APIRouter(tags=["tools"])

_ONE_TOOL = problem_responses(ErrorType.TOOL_NOT_FOUND, ErrorType.UNAVAILABLE)


@router.get("/tools/{tool_id}/versions", summary="All versions of a tool, the newest first", responses=_ONE_TOOL)
async def list_versions(tool_id: str, dependencies: Injected) -> ToolVersions:
    """Calls that name no version get `active_version`."""
    return await versions_of(dependencies, tool_id)


@router.post("/tools/{tool_id}/versions/{version}/activate", summary="Make a version the active one", responses=_ONE_TOOL)
async def activate_version(tool_id: str, version: str, dependencies: Injected) -> ToolVersions:
    """Calls that run go on with the version they began with. Activating the active version changes nothing."""
    return await activate(dependencies, tool_id, version)


@router.post("/tools/{tool_id}/versions/{version}/deactivate", summary="Make a version one that cannot be called", responses=_ONE_TOOL)
async def deactivate_version(tool_id: str, version: str, dependencies: Injected) -> ToolVersions:
    """Deactivating the active version leaves the tool `unavailable` until one is activated."""
    return await deactivate(dependencies, tool_id, version)
