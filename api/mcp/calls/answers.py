"""Results of calls in MCP's form."""

import asyncio
import base64
import json

from pydantic import JsonValue, ValidationError

from api.json_object import JsonObject
from api.ports import Files
from toolagent.contracts.calls import ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.records import StoredFile
from toolagent.contracts.references import ResultReference
from toolagent.core.failures import ContentMissingError, ContentUnavailableError
from toolagent.core.formats.schemas import is_object_schema
from toolagent.core.schemas import FILE_PATH, mentions_format, values_of_format

CALL_ID_KEY = "toolagent/call_id"
"""The key of a call's id in `_meta` of its result."""

ERROR_KEY = "toolagent/error"
"""The key of our error, with its `validation_errors`, in `_meta` of a result with `isError`."""

FILE_URI = "toolagent://files/"

_INLINE_BYTES = 192 * 1024
"""Pictures up to this size are part of the answer; larger ones are links."""

STRUCTURED_BYTES = 4 * 1_048_576
"""Results up to this size are in `structuredContent` if the tool has an `outputSchema`."""

_MOST_FILES = 32


class Answers:
    def __init__(self, files: Files) -> None:
        self._files = files

    async def of(self, result: ToolResult, entry: ToolEntry | None = None) -> JsonObject:
        """A `CallToolResult`. An error of the call is an error of the tool, with our error in `_meta`.

        It has no `structuredContent`, because clients check that by the tool's `outputSchema` also if `isError` is set.
        """
        meta: JsonObject = {CALL_ID_KEY: result.call_id} if result.call_id else {}
        if result.error is None:
            answer = {"isError": False, **await self._succeeded(result, entry)}
        else:
            answer = _failed(result, result.error)
            meta[ERROR_KEY] = _told(result, result.error)
        return {**answer, **({"_meta": meta} if meta else {})}

    async def _succeeded(self, result: ToolResult, entry: ToolEntry | None) -> JsonObject:
        output = result.result
        if result.is_reference and (reference := _reference(output)) is not None:
            return await self._referred(reference, entry)
        is_structured = isinstance(output, dict)
        if entry is not None and is_structured and (blocks := _blocks(entry, output)) is not None:
            return {"content": blocks}
        content: list[JsonValue] = [_text(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))]
        if entry is not None:
            content += [await self._linked(file_id) for file_id in _files_in(entry, output)]
        return {"content": content, "structuredContent": output} if is_structured else {"content": content}

    async def _referred(self, reference: ResultReference, entry: ToolEntry | None) -> JsonObject:
        """A result that was stored as a file. Clients refuse an answer without `structuredContent` if the tool has an `outputSchema`."""
        content: list[JsonValue] = [_text(reference.preview), await self._linked(reference.file_id)]
        if entry is None or not is_object_schema(entry.manifest.output_schema):
            return {"content": content}
        file = await self._files.get(reference.file_id) if reference.size <= STRUCTURED_BYTES else None
        data = await self.bytes_of(file) if file is not None else None
        if data is not None:
            return {"content": content, "structuredContent": await asyncio.to_thread(json.loads, data)}
        where = f"Read GET {reference.file}; do not call the tool again for it."
        told = (
            f"The tool succeeded. Its result of {reference.size} bytes is not in this answer, which has at most {STRUCTURED_BYTES}. {where}"
        )
        return {"content": [_text(told), *content], "isError": True}

    async def _linked(self, file_id: str) -> JsonValue:
        """The file as an image if it is a small picture, otherwise as a link."""
        file = await self._files.get(file_id)
        if file is None:
            return {"type": "resource_link", "uri": f"{FILE_URI}{file_id}", "name": file_id}
        if file.media_type.startswith("image/") and file.size <= _INLINE_BYTES and (data := await self.bytes_of(file)) is not None:
            return {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": file.media_type}
        return {"type": "resource_link", **described(file)}

    async def bytes_of(self, file: StoredFile) -> bytes | None:
        """The content of a file; None if it is gone."""
        try:
            return b"".join([piece async for piece in self._files.read(file)])
        except (ContentMissingError, ContentUnavailableError):
            return None


def described(file: StoredFile) -> JsonObject:
    """A file as a resource; `size` is in bytes."""
    return {"uri": f"{FILE_URI}{file.file_id}", "name": file.name, "mimeType": file.media_type, "size": file.size}


def _failed(result: ToolResult, error: ToolError) -> JsonObject:
    issues = [f"{issue.path}: {issue.message}" for issue in result.validation_errors]
    if isinstance(error.details, dict) and "output" in error.details:
        issues.append(f"output: {json.dumps(error.details['output'], ensure_ascii=False)}")
    return {"content": [_text("\n".join([f"{error.type.value}: {error.message}", *issues]))], "isError": True}


def _told(result: ToolResult, error: ToolError) -> JsonObject:
    issues: list[JsonValue] = [issue.model_dump(mode="json") for issue in result.validation_errors]
    return {**error.model_dump(mode="json"), **({"validation_errors": issues} if issues else {})}


def _text(text: str) -> JsonValue:
    return {"type": "text", "text": text}


def _reference(output: JsonValue) -> ResultReference | None:
    try:
        return ResultReference.model_validate(output)
    except ValidationError:
        return None


def _blocks(entry: ToolEntry, output: JsonValue) -> list[JsonValue] | None:
    """The content blocks of a tool that answers in blocks. Its runtime gives `text`, and other blocks in `content`."""
    if entry.manifest.output_schema or not any(source.traits.in_blocks for source in entry.sources):
        return None
    if not isinstance(output, dict) or not output.keys() <= {"text", "content"}:
        return None
    text, content = output.get("text"), output.get("content")
    if not isinstance(text, str) or not isinstance(content, list | None):
        return None
    return [*([_text(text)] if text or not content else []), *(content or [])]


def _files_in(entry: ToolEntry, output: JsonValue) -> list[str]:
    schema = entry.manifest.output_schema
    if not mentions_format(schema, FILE_PATH):
        return []
    named = dict.fromkeys(value for _, value in values_of_format(schema, output, FILE_PATH))
    return list(named)[:_MOST_FILES]
