"""Files in parameters and outputs: a `format: file-path` value is a file id, or a path under the files root."""

import asyncio
import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Self

from pydantic import JsonValue

from engine.calls.endings import Refused
from engine.disk.below import folder_below, open_below, read_in_pieces
from engine.disk.leftovers import PROMPT_S, discard
from engine.disk.removal import NotRemoved
from engine.store.files import FileStore
from engine.uncancelled import finished
from engine.validation.long_values import walked
from toolagent.contracts.calls import ErrorType, ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentDamagedError, ContentMissingError, FileTooLargeError
from toolagent.core.schemas import FILE_PATH, map_values, mentions_format, values_of_format

_LINKS = (errno.ELOOP, errno.ENOTDIR)
"""Errors of opening a link, or a path through a link."""


class FileRefused(Refused):
    """The value names no file, or a forbidden one."""

    def __init__(self, error_type: ErrorType, path: str, message: str) -> None:
        self.path = path
        issue = ValidationIssue(path=path, message=message, keyword=FILE_PATH)
        super().__init__(error_type, f"{path}: {message}", {"path": path}, (issue,))


class CallFolder:
    """The files of one call while it runs: the tool reads `in` and writes `out`.

    A sandboxed tool sees only the folders of its own calls, but may change them in any way: nothing here follows a link below `root`,
    which no tool sees. `place` is the folder that the process sees; it belongs to the tool, unless tools share a process. `opened` has
    the folders of running calls.
    """

    def __init__(
        self,
        root: Path,
        call_id: str,
        manifest: ToolManifest,
        place: str | None = None,
        opened: set[Path] | None = None,
        *,
        patience_s: float = PROMPT_S,
    ) -> None:
        self._root = root.resolve()
        self._folder = self._root.joinpath(place or manifest.tool_id, call_id)
        self.outputs = self._folder / "out"
        self._opened, self._patience_s = set[Path]() if opened is None else opened, patience_s
        self.left: NotRemoved | None = None
        """After closing: what could not be removed. Removal is retried later."""

    @cached_property
    def staged(self) -> Path:
        return self._root / f".in-{secrets.token_hex(8)}"

    @property
    def inputs(self) -> Path:
        return self._folder / "in"

    async def __aenter__(self) -> Self:
        self._opened |= {self.staged, self._folder}
        try:
            await asyncio.to_thread(self._make)
        except BaseException:
            self._opened -= {self.staged, self._folder}
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await finished(asyncio.to_thread(self._remove))
        finally:
            self._opened -= {self.staged, self._folder}

    async def hand_over(self, put: Callable[[Path], Awaitable[Path]]) -> Path:
        """The path where the tool finds the file that `put` writes, in a folder that the tool does not see meanwhile. Raises OSError."""
        own = secrets.token_hex(8)
        staged = self.staged / own
        await asyncio.to_thread(staged.mkdir, parents=True)
        file = await put(staged)
        await asyncio.to_thread(self._show, staged)
        return self.inputs / own / file.relative_to(staged)

    def open(self, value: str) -> BinaryIO | None:
        """The regular file that the tool names; None if it is not in this folder. Raises OSError."""
        file = Path(os.path.normpath(self.outputs / value))
        if not any(file != folder and file.is_relative_to(folder) for folder in (self.outputs, self.inputs)):
            return None
        return open_below(self._root, *file.relative_to(self._root).parts)

    def _make(self) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        tool, call = self._folder.relative_to(self._root).parts
        for parents, name in (((tool,), call), ((tool, call), "in"), ((tool, call), "out")):
            with folder_below(self._root, *parents) as folder, contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=folder)
        with folder_below(self._root, tool, call, "out") as folder:
            os.fchmod(folder, 0o777)  # for the user that the tool runs as; no other user reaches it below our private folder

    def _remove(self) -> None:
        kept = [discard(folder, self._patience_s) for folder in (self.staged, self._folder)]
        self.left = kept[0] or kept[1]

    def _show(self, staged: Path) -> None:
        for path in (staged, *staged.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o444)
        with folder_below(self._root, *self.inputs.relative_to(self._root).parts) as folder:
            os.rename(staged, staged.name, dst_dir_fd=folder)


class FileParameters:
    """Callers may name the files in `root` by path."""

    def __init__(self, files: FileStore, root: Path) -> None:
        self._files = files
        self._root = root

    async def check(self, schema: JsonSchema, params: dict[str, JsonValue]) -> None:
        """Raises FileRefused for the first value that names no file, or a forbidden one.

        The retention of named files begins anew, so that they outlast the call.
        """
        for path, value in (await _named_files(schema, params)).items():
            await self._find(path, value)

    async def resolve(self, schema: JsonSchema, params: dict[str, JsonValue], folder: CallFolder) -> dict[str, JsonValue]:
        """The parameters for the tool, with absolute paths. Raises FileRefused."""
        named = await _named_files(schema, params)
        resolved = await _replaced(schema, params, {path: str(await self._locate(path, value, folder)) for path, value in named.items()})
        return resolved if isinstance(resolved, dict) else {}

    async def take_in(self, schema: JsonSchema, output: JsonValue, folder: CallFolder) -> JsonValue:
        """The output, with its files in the content store. Raises FileRefused."""
        named = await _named_files(schema, output)
        return await _replaced(schema, output, {path: await self._take(path, value, folder) for path, value in named.items()})

    async def _find(self, path: str, value: str) -> StoredFile | Path:
        if re.fullmatch(FILE_ID_PATTERN, value):
            file = await self._files.use(value)
            if file is None:
                raise FileRefused(ErrorType.VALIDATION_ERROR, path, f"There is no file {value!r}; upload it with POST /files.")
            return file
        located = await asyncio.to_thread(_under, self._root, value)
        if located is None:
            place = "put it into the folder of files that calls may name (TOOL_AGENT_FILES_ROOT) and give its path from there"
            message = f"{value[:200]!r} is a path out of the files root. Upload it with POST /files and give its id, or {place}."
            raise FileRefused(ErrorType.SECURITY_ERROR, path, message)
        if not await asyncio.to_thread(_is_file, located):
            message = f"There is no file {value[:200]!r} under the files root. Upload it with POST /files and give its id."
            raise FileRefused(ErrorType.VALIDATION_ERROR, path, message)
        return located

    async def _locate(self, path: str, value: str, folder: CallFolder) -> Path:
        found = await self._find(path, value)

        async def put(place: Path) -> Path:
            if isinstance(found, StoredFile):
                return await self._files.materialise(found, place)
            # A copy, because a sandboxed tool sees only the files of its call, and no tool may change the original.
            return Path(await asyncio.to_thread(shutil.copyfile, found, place / found.name))

        try:
            return await folder.hand_over(put)
        except ContentMissingError as error:
            message = f"The file {value!r} is known, but its bytes are gone from the store; upload it again with POST /files."
            raise FileRefused(ErrorType.VALIDATION_ERROR, path, message) from error
        except ContentDamagedError as error:
            raise FileRefused(ErrorType.UNAVAILABLE, path, str(error)) from error

    async def _take(self, path: str, value: str, folder: CallFolder) -> str:
        if re.fullmatch(FILE_ID_PATTERN, value) and await self._files.use(value) is not None:
            return value
        try:
            file = await asyncio.to_thread(folder.open, value)
            if file is None:
                message = "The tool named a file outside its output folder as its output."
                raise FileRefused(ErrorType.SECURITY_ERROR, path, message)
            with file:
                return (await self._files.put(read_in_pieces(file), Path(value).name)).file_id
        except FileTooLargeError as error:
            raise FileRefused(ErrorType.OUTPUT_VALIDATION_ERROR, path, str(error)) from error
        except (OSError, ValueError) as error:  # a name with a NUL, too
            if isinstance(error, OSError) and error.errno in _LINKS:
                message = "The tool named a link as its output; links are not followed."
                raise FileRefused(ErrorType.SECURITY_ERROR, path, message) from error
            message = f"The tool's output file cannot be read: {error.strerror if isinstance(error, OSError) else error}."
            raise FileRefused(ErrorType.OUTPUT_VALIDATION_ERROR, path, message) from error


async def _named_files(schema: JsonSchema, value: JsonValue) -> dict[str, str]:
    """The named files, by JSON path, because several branches of a schema may describe one value."""
    return await walked(value, lambda: dict(values_of_format(schema, value, FILE_PATH))) if mentions_format(schema, FILE_PATH) else {}


async def _replaced(schema: JsonSchema, value: JsonValue, by_path: dict[str, str]) -> JsonValue:
    if not by_path:
        return value
    return await walked(value, lambda: map_values(schema, value, lambda path, text, _schema: by_path.get(path, text)))


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
