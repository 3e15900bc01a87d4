"""How a use of an agent's tool is named in the store: a model may give one id twice, but not in one message."""

import hashlib


def key_of_use(position: int, tool_use_id: str) -> str:
    """Of the use with this id in the message at this position; under it lies what came of it. At most 64 characters."""
    return f"use:{position}:{hashlib.sha256(tool_use_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
