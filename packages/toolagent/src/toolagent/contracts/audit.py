"""The audit log: what sandboxed programs did."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from toolagent.contracts.calls import Caller, ErrorType
from toolagent.contracts.contract import Contract
from toolagent.contracts.sandbox import SandboxAccount

__all__ = ["AuditEntry", "AuditPage"]


class AuditEntry(Contract):
    """One run. Parameters and command are masked and cut; `at` is its start, `duration_s` is in seconds."""

    at: datetime
    action: Literal["call", "start", "build"]
    """A call, the start of a tool that stays up, or the build of an environment."""
    tool_id: str
    version: str = ""
    call_id: str = ""
    host: str = ""
    caller: Caller = Caller()
    params: dict[str, JsonValue] = {}
    command: tuple[str, ...] = ()
    sandbox: SandboxAccount | None = None
    installs: tuple[str, ...] = ()
    """Packages that were installed for it, as `name==version`, or the name of the lock."""
    advisories: tuple[str, ...] = ()
    """Known vulnerabilities of its dependencies."""
    refusals: tuple[str, ...] = ()
    """Connections that the proxy refused, as `host:port: reason`."""
    truncated: tuple[str, ...] = ()
    """Outputs that were cut: `stdout`, `stderr`."""
    duration_s: float = 0.0
    outcome: str = "success"
    """`success`, `error`, `cancelled` or `timeout`."""
    error_type: ErrorType | None = None
    message: str = ""


class AuditPage(Contract):
    """Entries of the host that answers, the newest first.

    `more`: older entries were not read. `unreadable`: lines of the log that are not entries, or were cut off by a crash.
    """

    entries: tuple[AuditEntry, ...]
    more: bool = False
    unreadable: int = 0
