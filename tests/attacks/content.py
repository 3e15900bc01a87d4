"""Files of the content store that are damaged under it."""

import hashlib
import os
from http import HTTPStatus
from pathlib import Path

import httpx

from tests.attacks.attack import Attack, Kind, Target, expect

__all__ = ["KIND"]

_MIB = 1 << 20


def damaged(target: Target) -> str:
    """Damaged bytes are never served, and an upload of the right bytes repairs the file."""
    right = os.urandom(3 * _MIB)
    file_id = _upload(target, right)
    stored = _stored(target, right)
    with stored.open("r+b") as file:
        file.seek(2 * _MIB)
        file.write(b"damaged")
    told = _download(target, file_id, right)
    again = _upload(target, right)
    healed = target.ask("GET", f"/files/{again}")
    expect(healed.content == right, f"after a new upload: HTTP {healed.status_code}, {len(healed.content):,} bytes, not the right ones")
    return f"{told}; right again after a new upload"


def cut(target: Target) -> str:
    right = os.urandom(_MIB)
    file_id = _upload(target, right)
    os.truncate(_stored(target, right), 1000)
    return _download(target, file_id, right)


def gone(target: Target) -> str:
    right = os.urandom(_MIB)
    file_id = _upload(target, right)
    _stored(target, right).unlink()
    told = _download(target, file_id, right)
    again = target.ask("GET", f"/files/{_upload(target, right)}")
    expect(again.content == right, f"after a new upload: HTTP {again.status_code}")
    return told


def part_of_a_damaged_one(target: Target) -> str:
    """A range request must not return damaged bytes either."""
    right = os.urandom(3 * _MIB)
    file_id = _upload(target, right)
    with _stored(target, right).open("r+b") as file:
        file.write(b"damaged")
    try:
        answer = target.ask("GET", f"/files/{file_id}", headers={"Range": "bytes=0-99"})
    except httpx.TransportError as error:
        return type(error).__name__
    expect(not answer.is_success or answer.content == right[:100], f"HTTP {answer.status_code} with damaged bytes")
    return str(answer.status_code)


def damaged_archive(target: Target) -> str:
    """The archive of a tool's project is rebuilt from its folder."""
    for stored in _files(target):
        stored.write_bytes(stored.read_bytes()[:-10] + b"0123456789")
    answer = target.call("examples:word-count", {"text": "a b"})
    expect(answer.status_code == HTTPStatus.OK, f"HTTP {answer.status_code}: {answer.text[:300]}")
    return str(answer.status_code)


def _upload(target: Target, content: bytes) -> str:
    answer = target.http.post("/files", files={"file": ("f.bin", content)})
    expect(answer.status_code == HTTPStatus.CREATED, f"upload: HTTP {answer.status_code}: {answer.text[:200]}")
    return answer.json()["file_id"]


def _download(target: Target, file_id: str, right: bytes) -> str:
    """How the download was refused: by a status, or by a connection that breaks before the last byte."""
    try:
        answer = target.ask("GET", f"/files/{file_id}")
    except httpx.TransportError as error:
        return f"the connection broke ({type(error).__name__})"
    expect(answer.content != right, "it is not damaged")
    expect(answer.status_code in {404, 503}, f"HTTP {answer.status_code} with {len(answer.content):,} bytes that are not the right ones")
    return str(answer.status_code)


def _files(target: Target) -> list[Path]:
    return [path for path in (target.service.state / "content").rglob("*") if path.is_file() and not path.name.startswith(".")]


def _stored(target: Target, content: bytes) -> Path:
    """The path of the content with this hash."""
    digest = hashlib.sha256(content).hexdigest()
    return next(path for path in _files(target) if digest in "".join(path.relative_to(target.service.state).parts))


KIND = Kind(
    "content",
    (
        Attack("damaged", "bytes of a stored file are changed, it is fetched, the right ones are sent again", damaged),
        Attack("cut", "a stored file is cut", cut),
        Attack("gone", "a stored file is removed", gone),
        Attack("range", "a range of a damaged file", part_of_a_damaged_one),
        Attack("damaged-archive", "all stored files are damaged, then a shipped tool is called", damaged_archive, in_ci=False),
    ),
)
