"""Parameters and outputs that name files: `format: file-path` takes a file id or a path under the files root, nothing else."""

import asyncio
import re
import shutil
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from engine.store.files import FileStore
from toolagent.contracts.calls import ErrorType, ToolError, ValidationIssue
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent.contracts.manifest import JsonSchema, ToolManifest
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentMissingError, FileTooLargeError
from toolagent.core.schemas import FILE_PATH, map_values, mentions_format, values_of_format

__all__ = ["CallFolder", "FileParameters", "FileRefused"]


class FileRefused(Exception):
    """A value that names no file a tool may have; `error` is the answer of the call."""

    def __init__(self, error_type: ErrorType, path: str, message: str) -> None:
        super().__init__(message)
        issue = ValidationIssue(path=path, message=message, keyword=FILE_PATH)
        self.issues = (issue,)
        self.error = ToolError(type=error_type, message=f"{path}: {message}", details={"path": path})


class CallFolder:
    """Where the files of one call are while it runs: `in` for the tool to read, `out` for it to write.

    It is only made for tools whose schemas speak of files.
    """

    def __init__(self, root: Path, call_id: str, manifest: ToolManifest) -> None:
        self._folder = root / call_id
        self._needed = any(mentions_format(schema, FILE_PATH) for schema in (manifest.input_schema, manifest.output_schema))
        self.inputs = self._folder / "in"
        self.outputs = self._folder / "out"

    async def __aenter__(self) -> Self:
        if self._needed:
            await asyncio.to_thread(self.outputs.mkdir, parents=True, exist_ok=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._needed:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


class FileParameters:
    """`root` is the folder whose files callers may name by path."""

    def __init__(self, files: FileStore, root: Path) -> None:
        self._files = files
        self._root = root

    async def check(self, schema: JsonSchema, params: dict[str, JsonValue]) -> None:
        """Raises FileRefused for the first value that names no file, or one that may not be named.

        The retention of the files that are named begins anew, so that they outlast the call.
        """
        for path, value in _named_files(schema, params).items():
            await self._find(path, value)

    async def resolve(self, schema: JsonSchema, params: dict[str, JsonValue], folder: CallFolder) -> dict[str, JsonValue]:
        """The parameters as the tool gets them, with absolute paths. Raises FileRefused."""
        named = _named_files(schema, params)
        resolved = _replaced(schema, params, {path: str(await self._locate(path, value, folder)) for path, value in named.items()})
        return resolved if isinstance(resolved, dict) else {}

    async def take_in(self, schema: JsonSchema, output: JsonValue, folder: CallFolder) -> JsonValue:
        """The output with every file that the tool made taken into the content store. Raises FileRefused."""
        named = _named_files(schema, output)
        return _replaced(schema, output, {path: await self._take(path, value, folder) for path, value in named.items()})

    async def _find(self, path: str, value: str) -> StoredFile | Path:
        if re.fullmatch(FILE_ID_PATTERN, value):
            file = await self._files.use(value)
            if file is None:
                raise FileRefused(ErrorType.VALIDATION_ERROR, path, f"There is no file {value!r}; upload it with POST /files.")
            return file
        located = await asyncio.to_thread(_under, self._root, value)
        if located is None:
            message = "The path leaves the files root. Name a file under it, or upload one with POST /files and give its id."
            raise FileRefused(ErrorType.SECURITY_ERROR, path, message)
        if not await asyncio.to_thread(_is_file, located):
            message = f"There is no file {value[:200]!r} under the files root. Upload it with POST /files and give its id."
            raise FileRefused(ErrorType.VALIDATION_ERROR, path, message)
        return located

    async def _locate(self, path: str, value: str, folder: CallFolder) -> Path:
        found = await self._find(path, value)
        if isinstance(found, Path):
            return found
        try:
            return await self._files.materialise(found, folder.inputs)
        except ContentMissingError as error:
            message = f"The file {value!r} is known, but its bytes are gone from the store; upload it again with POST /files."
            raise FileRefused(ErrorType.VALIDATION_ERROR, path, message) from error

    async def _take(self, path: str, value: str, folder: CallFolder) -> str:
        if re.fullmatch(FILE_ID_PATTERN, value) and await self._files.use(value) is not None:
            return value
        located = await asyncio.to_thread(_under, folder.outputs, value) or await asyncio.to_thread(_under, self._root, value)
        if located is None:
            message = "The tool named a file outside its output folder as its output."
            raise FileRefused(ErrorType.SECURITY_ERROR, path, message)
        try:
            return (await self._files.put_file(located)).file_id
        except FileTooLargeError as error:
            raise FileRefused(ErrorType.OUTPUT_VALIDATION_ERROR, path, str(error)) from error
        except OSError as error:
            message = f"The tool's output file cannot be read: {error.strerror}."
            raise FileRefused(ErrorType.OUTPUT_VALIDATION_ERROR, path, message) from error


def _named_files(schema: JsonSchema, value: JsonValue) -> dict[str, str]:
    """What is named, by JSON path: several branches of a schema may speak of one place."""
    return dict(values_of_format(schema, value, FILE_PATH))


def _replaced(schema: JsonSchema, value: JsonValue, by_path: dict[str, str]) -> JsonValue:
    return map_values(schema, value, lambda path, text, _schema: by_path.get(path, text))


def _under(root: Path, value: str) -> Path | None:
    """The path with all links followed, if it is below the root."""
    try:
        located = (root / value).resolve()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, a loop of links
        return None
    return located if located.is_relative_to(root.resolve()) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long for the file system
        return False
