"""References to large results."""

from toolagent.contracts.contract import Contract

__all__ = ["ResultReference"]


class ResultReference(Contract):
    """The content of `ToolResult.result` if `is_reference` is set. `size` is in bytes of JSON."""

    file: str
    """Path of the whole result at the front door: `/files/{file_id}`."""
    file_id: str
    media_type: str = "application/json"
    size: int
    sha256: str
    preview: str
    """The beginning of the JSON."""
