"""Writes runs and installations of scripts to the audit log."""

from collections.abc import Callable, Sequence

from engine.runtimes.auditing.audit import Audit, failed
from engine.runtimes.environments.environments import Installed
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.scripts.service import ScriptRun
from engine.runtimes.secrecy import hidden_text, secrets_of
from toolagent.contracts.audit import AuditEntry
from toolagent.core.calls.masking import masked_caller, masked_command, masked_params


class ScriptAccounts:
    """Receives the accounts of a ScriptService and of its environments, for this host."""

    def __init__(self, audit: Audit, host: str) -> None:
        self._audit, self._host = audit, host

    def ran(self, run: ScriptRun) -> None:
        asked = dict(run.call.params if run.call.asked is None else run.call.asked)
        self._note(
            AuditEntry(
                at=run.at,
                action="call" if run.call.call_id else "start",
                tool_id=run.call.tool_id,
                version=run.call.version,
                call_id=run.call.call_id,
                host=self._host,
                caller=masked_caller(run.call.caller),
                params=masked_params(run.call.schema, asked),
                command=masked_command(run.command),
                sandbox=run.account,
                refusals=run.refusals,
                truncated=run.truncated,
                duration_s=run.duration_s,
                outcome="success" if run.reply else "cancelled",
            ),
            run.failure,
            lambda: secrets_of(run.call.schema, asked),
        )

    def installed(self, made: Installed) -> None:
        self._note(
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
                outcome="success" if made.done else "cancelled",
            ),
            made.failure,
        )

    def _note(self, entry: AuditEntry, failure: ScriptFailure | None, secrets: Callable[[], Sequence[str]] = tuple) -> None:
        if failure is not None:
            entry = entry.model_copy(update={**failed(failure), "message": hidden_text(failure.message, secrets())})
        self._audit.note(entry)
