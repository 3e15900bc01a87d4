"""The schema of files of tools, for editors and checkers."""

from fastapi import APIRouter

from api.documentation import problem_responses
from api.json_object import JsonObject
from toolagent.core.catalog.tool_files import tool_file_schema

router = APIRouter(tags=["tools"])


@router.get("/schemas/tool.json", summary="The JSON Schema of a `*.tool.json`", responses=problem_responses())
async def schema_of_tool_files() -> JsonObject:
    """The schema of a tool's file. The file may also have `//` comments."""
    return tool_file_schema()
