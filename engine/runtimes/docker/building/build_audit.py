"""The audit of what is built: a line for each image, and for each command in a build container."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from engine.runtimes.auditing.audit import Audit, Refusals, Told, noted
from engine.runtimes.docker_engine.commands import TIMED_OUT, Executed
from toolagent.contracts.audit import AuditEntry
from toolagent.core.calls.masking import masked_command


@dataclass(frozen=True, slots=True)
class BuildAudit:
    """Of one image or container; `refusals` hears its proxy."""

    audit: Audit
    host: str
    tool_id: str
    refusals: Refusals = field(default_factory=Refusals)

    @contextmanager
    def command(self, command: Sequence[str], action: Literal["build", "start"] = "build") -> Generator[Told]:
        """Leaves a line on what the block does, however it ends; what the block puts into what it is given stands there too."""
        with noted(self.audit, self._entry(command, action), self.refusals) as told:
            yield told

    def rest(self) -> None:
        """A line on what was refused to commands in the background since, if anything was."""
        with self.refusals.heard() as refused:
            pass
        if refused:
            message = "Refused to commands in the background."
            self.audit.note(self._entry(()).model_copy(update={"refusals": tuple(refused), "message": message}))

    def _entry(self, command: Sequence[str], action: Literal["build", "start"] = "build") -> AuditEntry:
        at = datetime.now(UTC)
        return AuditEntry(at=at, action=action, tool_id=self.tool_id, host=self.host, command=masked_command(tuple(command)))


def told_of(ran: Executed) -> Told:
    """What the line on a command says of its end."""
    if not ran.exit_code:
        return {"truncated": ran.truncated}
    outcome = "timeout" if ran.exit_code == TIMED_OUT else "error"
    return {"truncated": ran.truncated, "outcome": outcome, "message": f"The exit code was {ran.exit_code}."}
