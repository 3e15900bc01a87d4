"""Files of ours beside a task's own, which are there whole or not at all."""

import secrets
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """In the place of what was there. Raises OSError. Blocks."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    part.write_bytes(content)
    part.rename(path)
