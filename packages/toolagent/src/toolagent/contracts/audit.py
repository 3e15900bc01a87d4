"""What a sandboxed program did, for those who have to look into it later."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from toolagent.contracts.calls import Caller, ErrorType
from toolagent.contracts.contract import Contract
from toolagent.contracts.sandbox import SandboxAccount

__all__ = ["AuditEntry", "AuditPage"]


class AuditEntry(Contract):
    """One run. Parameters and command come masked and cut; `at` is when it began, `duration_s` is in seconds."""

    at: datetime
    action: Literal["call", "start", "build"]
    """A call, the start of a tool that stays, or an environment."""
    tool_id: str
    version: str = ""
    call_id: str = ""
    host: str = ""
    caller: Caller = Caller()
    params: dict[str, JsonValue] = {}
    command: tuple[str, ...] = ()
    sandbox: SandboxAccount | None = None
    installs: tuple[str, ...] = ()
    """What was installed for it, as `name==version` or the lock's name."""
    advisories: tuple[str, ...] = ()
    """Known vulnerabilities of what it depends on."""
    refusals: tuple[str, ...] = ()
    """What the proxy did not let through, as `host:port: reason`."""
    truncated: tuple[str, ...] = ()
    """Outputs that were cut: `stdout`, `stderr`."""
    duration_s: float = 0.0
    outcome: str = "success"
    """`success`, `error`, `cancelled` or `timeout`."""
    error_type: ErrorType | None = None
    message: str = ""


class AuditPage(Contract):
    """The newest entries first, of the host that answers.

    `more`: there are older ones that were not looked at. `unreadable`: lines of the log that are none of ours, or were torn by a crash.
    """

    entries: tuple[AuditEntry, ...]
    more: bool = False
    unreadable: int = 0
