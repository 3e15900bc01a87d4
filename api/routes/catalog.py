"""The catalog as files."""

from fastapi import APIRouter
from pydantic import JsonValue

from api.documentation import problem_responses
from api.ports import Injected
from toolagent.contracts.calls import ErrorType

router = APIRouter(tags=["tools"])


@router.get("/catalog", summary="The catalog as files: file name → JSON document", responses=problem_responses(ErrorType.UNAVAILABLE))
async def export_catalog(dependencies: Injected) -> dict[str, dict[str, JsonValue]]:
    """What came from a file is as it was there, but for what changed since; keys are names of secrets."""
    return await dependencies.catalog.documents()
