"""Files of ours beside a task's own, which are there whole or not at all."""

import hashlib
import secrets
from pathlib import Path


def use_digest(use: str) -> str:
    """The same for each attempt at a use, whose name is partly a model's own. 32 hex digits, of which some may do."""
    return hashlib.sha256(use.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def write_whole(path: Path, content: bytes) -> None:
    """In the place of what was there. Raises OSError. Blocks."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    part.write_bytes(content)
    part.rename(path)
