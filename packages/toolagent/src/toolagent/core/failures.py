"""Failures of the engine that its callers handle."""

__all__ = [
    "ContentDamagedError",
    "ContentMissingError",
    "ContentUnavailableError",
    "FileTooLargeError",
    "ImKeyUsedError",
    "ImUseRefusedError",
    "McpLoginRequiredError",
    "McpServerExistsError",
    "McpServerNotReachedError",
    "McpServerNotStartedError",
    "McpServerRefusedError",
    "McpServersBusyError",
    "NoSuchMcpServerError",
    "NoSuchTableError",
    "RegistrationRefusedError",
    "StoreFullError",
    "StoreUnavailableError",
    "StoreUnwritableError",
    "TableExistsError",
    "TableNotReachedError",
    "TableRefusedError",
    "TaskConflictError",
    "TaskEndedError",
    "UnknownTaskError",
]


class FileTooLargeError(ValueError):
    """More bytes than a file may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"A file may have at most {limit} bytes (TOOL_AGENT_MAX_FILE_BYTES).")
        self.limit = limit


class ImKeyUsedError(ValueError):
    """The key of a use of the IM windows was used for another use."""


class ImUseRefusedError(ValueError):
    """A faulty use of the IM windows by an agent, in words for the agent."""


class StoreUnavailableError(RuntimeError):
    """The database cannot be reached, or is locked for too long. `told` is safe to show to callers."""

    told = "The database does not answer."


class StoreUnwritableError(StoreUnavailableError):
    """A store cannot be written until an operator acts. The message says what to do; `told` contains no path."""

    def __init__(self, cause: str, told: str, message: str) -> None:
        super().__init__(message)
        self.cause = cause
        self.told = told


class ContentUnavailableError(StoreUnavailableError):
    """The content store cannot be reached or written; the message says where and why."""

    told = "The store of files does not answer."


class StoreFullError(ContentUnavailableError):
    """The content store is full."""

    told = "There is no room for more files."


class ContentDamagedError(ContentUnavailableError):
    """A file's bytes are damaged and were set aside; upload the file again."""

    def __init__(self, file_id: str, name: str) -> None:
        super().__init__(
            f"The bytes of the file {file_id} ({name[:200]!r}) were damaged where files are kept, and are not given out any more. "
            "Upload the file again with POST /files; its id stays the same."
        )
        self.file_id = file_id


class ContentMissingError(LookupError):
    """A file is known, but the content store lacks its bytes."""


class RegistrationRefusedError(ValueError):
    """A registration is refused because of `field`. `is_private`: it leads to a forbidden address."""

    def __init__(self, field: str, message: str, *, is_private: bool = False) -> None:
        super().__init__(message)
        self.field = field
        self.is_private = is_private


class TableRefusedError(RegistrationRefusedError):
    """An external tool table is refused."""


class TableNotReachedError(RuntimeError):
    """The host of an external tool table cannot be resolved now."""


class TableExistsError(ValueError):
    """Another table, or our own tools, have this name."""


class NoSuchTableError(LookupError):
    """There is no external tool table of this name."""


class McpServerRefusedError(RegistrationRefusedError):
    """An MCP server is refused."""


class McpServerNotReachedError(RuntimeError):
    """An MCP server does not start or answer, or is not an MCP server."""


class McpLoginRequiredError(RuntimeError):
    """An MCP server requires the login of a person."""


class McpServerNotStartedError(RuntimeError):
    """This process or host starts no MCP servers now; the message says why."""


class McpServersBusyError(McpServerNotStartedError):
    """Too many MCP servers are being listed. Try again later."""


class McpServerExistsError(ValueError):
    """Another MCP server, or a group, has this name."""


class NoSuchMcpServerError(LookupError):
    """There is no MCP server of this name."""


class TaskConflictError(ValueError):
    """The id belongs to a task with another request."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task {task_id!r} was asked for otherwise: other specification, description or idempotency key.")
        self.task_id = task_id


class TaskEndedError(RuntimeError):
    """The task has ended."""

    def __init__(self, task_id: str, status: str) -> None:
        super().__init__(f"Task {task_id!r} has ended: {status}.")
        self.task_id = task_id
        self.status = status


class UnknownTaskError(LookupError):
    """There is no task with this id."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"There is no task {task_id!r}.")
        self.task_id = task_id
