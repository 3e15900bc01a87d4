"""Hashes that ids are derived from."""

import hashlib
import json

from pydantic import JsonValue

__all__ = ["digest_of", "id_of"]


def digest_of(*parts: JsonValue) -> str:
    """64 hex digits."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def id_of(prefix: str, *parts: JsonValue) -> str:
    """The prefix and 40 hex digits."""
    return prefix + digest_of(*parts)[:40]
