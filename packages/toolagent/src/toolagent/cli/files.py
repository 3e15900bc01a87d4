"""Files that a call takes and gives."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from toolagent.cli.parameters import ParameterError, Upload, with_uploads
from toolagent.client.http import ToolAgentHttp

__all__ = ["file_ids", "output_file", "output_folder", "read_document", "read_text", "uploaded"]

_FILE_REFERENCE = re.compile(r"(?:/files/)?(file_[0-9a-f]{32})")


def read_text(path: str) -> str:
    """The text of a file that a parameter names. Raises ParameterError."""
    try:
        return Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ParameterError(
            f"{path!r} is not UTF-8 text (byte {error.start}); only a parameter of type file takes other files."
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def read_document(path: str) -> str:
    """The text of a file, or of stdin for `-`. Raises ParameterError."""
    if path != "-":
        return read_text(path)
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise ParameterError(f"Stdin is not UTF-8 text (byte {error.start}).") from error


def uploaded(service: ToolAgentHttp, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Uploads each local file and puts its id into the parameters. Nothing is sent unless all files can be read."""
    ids: dict[str, str] = {}

    def stored(path: Upload) -> str:
        if path not in ids:
            ids[path] = service.upload(Path(path)).file_id
        return ids[path]

    with_uploads(params, _readable)
    return with_uploads(params, stored)


def file_ids(value: JsonValue) -> Iterator[str]:
    """The ids of all files in a result, each once, in order."""
    yield from dict.fromkeys(_found(value))


def output_folder(path: Path) -> Path:
    """The folder, created if necessary. Raises ParameterError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ParameterError(f"--out {str(path)!r} cannot be a folder: {_reason(error)}.") from error
    return path


def output_file(path: Path) -> Path:
    """The file to write. Raises ParameterError."""
    if path.is_dir() or not path.parent.is_dir():
        raise ParameterError(f"--output {str(path)!r} cannot be written: name a file in a folder that is there.")
    return path


def _found(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            if match := _FILE_REFERENCE.fullmatch(value):
                yield match.group(1)
        case list():
            for item in value:
                yield from _found(item)
        case dict():
            for item in value.values():
                yield from _found(item)
        case _:
            return


def _readable(path: Upload) -> str:
    try:
        with Path(path).open("rb") as content:
            content.read(1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return path


def _unreadable(path: str, error: OSError | ValueError) -> ParameterError:
    return ParameterError(f"The file {str(path)!r} cannot be read: {_reason(error)}.")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
