"""The catalog as files."""

from fastapi import APIRouter

from api.documentation import UNAVAILABLE
from api.json_object import JsonObject
from api.ports import Injected

router = APIRouter(tags=["tools"])


@router.get("/catalog", summary="The catalog as files: file name → JSON document", responses=UNAVAILABLE)
async def export_catalog(dependencies: Injected) -> dict[str, JsonObject]:
    """Entries from files are as in the file, with later changes. Keys are names of secrets."""
    return await dependencies.catalog.documents()
