"""Writes our own files beside a task's, whole or not at all."""

import hashlib
import secrets
from pathlib import Path


def use_digest(use: str) -> str:
    """32 hex digits, the same for each attempt at a use. A model partly chooses the use's name."""
    return hashlib.sha256(use.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replaces a file atomically. Raises OSError. Blocks."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    part.write_bytes(content)
    if mode is not None:
        part.chmod(mode)
    part.rename(path)
