"""Downloads of files from the service."""

import mimetypes
from email.message import Message
from pathlib import Path, PurePosixPath

import httpx

from toolagent.client.bounded_answers import UNBOUNDED
from toolagent.client.http_answers import UnexpectedAnswer, require_success

__all__ = ["file_name", "free_path", "size_of", "stream_to"]

_PARTIAL = 206
_BEYOND = 416


def stream_to(client: httpx.Client, path: str, part: Path) -> None:
    """Download the missing rest of the file into `part`, by a range request. A service without ranges sends all of it.

    A stored file never changes, so earlier bytes are its beginning. Raises httpx.RequestError, ServiceError, OSError.
    """
    have = size_of(part)
    headers = {"Range": f"bytes={have}-"} if have else {}
    with client.stream("GET", path, headers=headers, extensions=UNBOUNDED) as answer:
        if answer.status_code == _BEYOND and have:
            total = answer.headers.get("content-range", "").rpartition("/")[2]
            if total == str(have):
                return
            part.unlink()
        else:
            require_success(answer)
            _append(answer, part, have)
            return
    stream_to(client, path, part)


def size_of(path: Path) -> int:
    """0 if there is no file."""
    return path.stat().st_size if path.exists() else 0


def _append(answer: httpx.Response, part: Path, have: int) -> None:
    if answer.status_code == _PARTIAL and not answer.headers.get("content-range", "").startswith(f"bytes {have}-"):
        raise UnexpectedAnswer(answer)
    with part.open("ab" if answer.status_code == _PARTIAL else "wb") as content:
        for chunk in answer.iter_bytes():
            content.write(chunk)


def file_name(answer: httpx.Response, file_id: str) -> str:
    """A safe form of the file's name at the service; else its id with an extension for its media type."""
    header = Message()
    header["content-disposition"] = answer.headers.get("content-disposition", "")
    given = PurePosixPath((header.get_filename() or "").replace("\\", "/")).name.lstrip(".")
    if given and given.isprintable() and len(given.encode("utf-8", "replace")) <= 200:
        return given
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    return file_id + (mimetypes.guess_extension(media_type) or "")


def free_path(folder: Path, name: str, file_id: str) -> Path:
    target = folder / name
    return target if not target.exists() else target.with_name(f"{target.stem}-{file_id.removeprefix('file_')[:8]}{target.suffix}")
