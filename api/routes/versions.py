"""The versions of a tool, and the active one."""

from fastapi import APIRouter

from api.documentation import ONE_TOOL
from api.ports import Injected
from api.views.versions import require_version, versions_of
from toolagent.contracts.versions import ToolVersions

router = APIRouter(tags=["tools"])


@router.get("/tools/{tool_id}/versions", summary="All versions of a tool, the newest first", responses=ONE_TOOL)
async def list_versions(tool_id: str, dependencies: Injected) -> ToolVersions:
    """Calls without a version get `active_version`."""
    return await versions_of(dependencies, tool_id)


@router.post("/tools/{tool_id}/versions/{version}/activate", summary="Make a version the active one", responses=ONE_TOOL)
async def activate_version(tool_id: str, version: str, dependencies: Injected) -> ToolVersions:
    """Running calls keep their version. Activating the active version changes nothing."""
    await require_version(dependencies, tool_id, version)
    await dependencies.registry.activate(tool_id, version)
    return await versions_of(dependencies, tool_id)


@router.post("/tools/{tool_id}/versions/{version}/deactivate", summary="Make a version one that cannot be called", responses=ONE_TOOL)
async def deactivate_version(tool_id: str, version: str, dependencies: Injected) -> ToolVersions:
    """Deactivating the active version leaves the tool `unavailable` until one is activated."""
    await require_version(dependencies, tool_id, version)
    await dependencies.registry.deactivate(tool_id, version)
    return await versions_of(dependencies, tool_id)
