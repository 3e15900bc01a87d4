"""Failures that cross from the engine to whoever asked it."""

__all__ = ["ContentMissingError", "ContentUnavailableError", "FileTooLargeError", "StoreFullError", "StoreUnavailableError"]


class FileTooLargeError(ValueError):
    """More bytes than a file may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"A file may have at most {limit} bytes (TOOL_AGENT_MAX_FILE_BYTES).")
        self.limit = limit


class StoreUnavailableError(RuntimeError):
    """The database cannot be reached, is locked for too long, or its disk is full."""


class ContentUnavailableError(StoreUnavailableError):
    """Where files are kept cannot be reached or written; the message says where and why."""


class StoreFullError(ContentUnavailableError):
    """Where files are kept there is no room for more."""


class ContentMissingError(LookupError):
    """A file is known, and its bytes are not where files are kept, or are not those that were put there."""
