"""Large results: what stands in a result instead of them."""

from toolagent.contracts.contract import Contract

__all__ = ["ResultReference"]


class ResultReference(Contract):
    """Stands in `ToolResult.result` when `is_reference` is set. `size` is in bytes of JSON."""

    file: str
    """Path of the whole result at the front door: `/files/{file_id}`."""
    file_id: str
    media_type: str = "application/json"
    size: int
    sha256: str
    preview: str
    """How the JSON begins."""
