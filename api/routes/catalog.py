"""The catalog as files."""

from fastapi import APIRouter

from api.documentation import UNAVAILABLE
from api.json_object import JsonObject
from api.ports import Injected

router = APIRouter(tags=["tools"])


@router.get("/catalog", summary="The catalog as files: file name → JSON document", responses=UNAVAILABLE)
async def export_catalog(dependencies: Injected) -> dict[str, JsonObject]:
    """What came from a file is as it was there, but for what changed since; keys are names of secrets."""
    return await dependencies.catalog.documents()
