"""Failures that cross from the engine to whoever asked it."""

__all__ = ["FileTooLargeError", "StoreUnavailableError"]


class FileTooLargeError(ValueError):
    """More bytes than a file may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"A file may have at most {limit} bytes (TOOL_AGENT_MAX_FILE_BYTES).")
        self.limit = limit


class StoreUnavailableError(RuntimeError):
    """The database cannot be reached, is locked for too long, or its disk is full."""
