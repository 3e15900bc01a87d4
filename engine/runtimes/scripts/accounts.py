"""Runs and installations of scripts as lines of the audit log."""

from engine.runtimes.auditing.audit import Audit
from engine.runtimes.environments.environments import Installed
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.scripts.service import ScriptRun
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.masking import masked_caller, masked_command, masked_params


class ScriptAccounts:
    """What a ScriptService and its environments tell, written down for this host."""

    def __init__(self, audit: Audit, host: str) -> None:
        self._audit, self._host = audit, host

    def ran(self, run: ScriptRun) -> None:
        ended = "success" if run.reply else "cancelled"
        self._audit.note(
            AuditEntry(
                at=run.at,
                action="call" if run.call.call_id else "start",
                tool_id=run.call.tool_id,
                version=run.call.version,
                call_id=run.call.call_id,
                host=self._host,
                caller=masked_caller(run.call.caller),
                params=masked_params(run.call.schema, dict(run.call.params if run.call.asked is None else run.call.asked)),
                command=masked_command(run.command),
                sandbox=run.account,
                refusals=run.refusals,
                truncated=run.truncated,
                duration_s=run.duration_s,
                outcome=_outcome(run.failure, ended),
                error_type=run.failure.error_type if run.failure else None,
                message=run.failure.message if run.failure else "",
            )
        )

    def installed(self, made: Installed) -> None:
        self._audit.note(
            AuditEntry(
                at=made.at,
                action="build",
                tool_id=made.tool_id,
                host=self._host,
                command=masked_command(tuple(made.commands[-1]) if made.commands else ()),
                sandbox=made.account,
                installs=tuple(one.encode(errors="replace").decode() for one in made.packages),  # names of files need be no text
                advisories=made.advisories,
                refusals=made.refusals,
                duration_s=made.duration_s,
                outcome=_outcome(made.failure, "success" if made.done else "cancelled"),
                error_type=made.failure.error_type if made.failure else None,
                message=made.failure.message if made.failure else "",
            )
        )


def _outcome(failure: ScriptFailure | None, otherwise: str) -> str:
    if failure is None:
        return otherwise
    return "timeout" if failure.error_type is ErrorType.TIMEOUT else "error"
