"""The audit of builds: one line for each image, and for each command in a build container."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from engine.runtimes.auditing.audit import Audit, Refusals, Told, noted
from engine.runtimes.docker_engine.commands import TIMED_OUT, Executed
from toolagent.contracts.audit import AuditEntry
from toolagent.core.calls.masking import masked_command


@dataclass(frozen=True, slots=True)
class BuildAudit:
    """The audit of one image or container; `refusals` collects what its proxy refuses."""

    audit: Audit
    host: str
    tool_id: str
    refusals: Refusals = field(default_factory=Refusals)

    def command(self, command: Sequence[str], action: Literal["build", "start"] = "build") -> AbstractContextManager[Told]:
        """Write a line about the command in the block, however it ends. The block may add fields to the yielded dict."""
        return noted(self.audit, self._entry(command, action), self.refusals)

    def rest(self) -> None:
        """Write a line about connections refused to background commands since then, if there were any."""
        with self.refusals.heard() as refused:
            pass
        if refused:
            message = "Refused to commands in the background."
            self.audit.note(self._entry(()).model_copy(update={"refusals": tuple(refused), "message": message}))

    def _entry(self, command: Sequence[str], action: Literal["build", "start"] = "build") -> AuditEntry:
        at = datetime.now(UTC)
        return AuditEntry(at=at, action=action, tool_id=self.tool_id, host=self.host, command=masked_command(tuple(command)))


def told_of(ran: Executed) -> Told:
    """The fields of an audit line about how a command ended."""
    if not ran.exit_code:
        return {"truncated": ran.truncated}
    outcome = "timeout" if ran.exit_code == TIMED_OUT else "error"
    return {"truncated": ran.truncated, "outcome": outcome, "message": f"The exit code was {ran.exit_code}."}
