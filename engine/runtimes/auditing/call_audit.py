"""The audit of programs that serve many calls."""

import asyncio
import contextlib
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from engine.network.proxy_rules import Asked
from engine.runtimes.auditing.audit import Audit
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.runtime import ToolRequest
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxAccount
from toolagent.core.calls.masking import masked_caller, masked_command, masked_params

Told: TypeAlias = dict[str, object]
"""Fields of an AuditEntry."""

_MOST_HEARD = 100


class Refusals:
    """What the proxy refuses to one server, for its listeners. Refusals without a listener are kept for the next one."""

    def __init__(self) -> None:
        self._unheard: dict[str, None] = {}
        self._listening: list[dict[str, None]] = []

    def tell(self, asked: Asked) -> None:
        if not asked.allowed:
            for heard in self._listening or [self._unheard]:
                if len(heard) < _MOST_HEARD:
                    heard[f"{asked.host}:{asked.port}: {asked.reason}"] = None

    def unheard(self) -> tuple[str, ...]:
        """Refusals without a listener so far. Returned once."""
        told, self._unheard = tuple(self._unheard), {}
        return told

    @contextlib.contextmanager
    def heard(self) -> Generator[dict[str, None]]:
        """Grows while the block lasts. Parallel calls both get a refusal."""
        heard, self._unheard = self._unheard, {}
        self._listening.append(heard)
        try:
            yield heard
        finally:
            # By identity: two that heard the same are equal.
            self._listening = [other for other in self._listening if other is not heard]


@dataclass(frozen=True, slots=True)
class Audited:
    """One program and what is said of it; `account` is None where we have not made what it runs in. `refusals` hears the proxy."""

    audit: Audit
    host: str
    tool: ToolManifest
    command: tuple[str, ...]
    account: SandboxAccount | None
    refusals: Refusals = field(default_factory=Refusals)

    def started(self, failure: RuntimeFailure | None = None) -> None:
        """A line that says so, or why it did not; with what it was refused on the way."""
        update: Told = {"refusals": self.refusals.unheard(), **(_failed(failure) if failure else {})}
        self.audit.note(self._entry("start", datetime.now(UTC)).model_copy(update=update))

    def ended(self) -> None:
        """A line on what was refused to it since its last call, if there is anything."""
        if refused := self.refusals.unheard():
            entry = self._entry("start", datetime.now(UTC))
            self.audit.note(entry.model_copy(update={"refusals": refused, "message": "It was refused this while no call was made."}))

    @contextlib.contextmanager
    def call(self, request: ToolRequest) -> Generator[None]:
        """Leaves a line on the call that the block makes, however the block ends."""
        called = request.manifest or self.tool
        update = {
            "call_id": request.call_id,
            "caller": masked_caller(request.caller),
            "params": masked_params(called.input_schema, request.params),
        }
        if called.tool_id != self.tool.tool_id:  # another that shares its process
            update |= {"tool_id": called.tool_id, "version": called.version}
        with noted(self.audit, self._entry("call", datetime.now(UTC)).model_copy(update=update), self.refusals):
            yield

    def _entry(self, action: Literal["call", "start"], at: datetime) -> AuditEntry:
        return AuditEntry(
            at=at,
            action=action,
            tool_id=self.tool.tool_id,
            version=self.tool.version,
            host=self.host,
            command=masked_command(self.command),
            sandbox=self.account,
        )


@contextlib.contextmanager
def noted(audit: Audit, entry: AuditEntry, refusals: Refusals) -> Generator[Told]:
    """Leaves the entry when the block has ended, with how it ended, how long it took, what was refused meanwhile, and what it put in."""
    began, told = time.monotonic(), Told()
    with refusals.heard() as refused:
        try:
            yield told
        except RuntimeFailure as error:
            told |= _failed(error)
            raise
        except asyncio.CancelledError:
            told["outcome"] = "cancelled"
            raise
        except BaseException as error:
            told |= {"outcome": "error", "message": type(error).__name__}
            raise
        finally:
            update = {"refusals": tuple(refused), "duration_s": time.monotonic() - began, **told}
            audit.note(entry.model_copy(update=update))


def _failed(failure: RuntimeFailure) -> Told:
    outcome = "timeout" if failure.error_type is ErrorType.TIMEOUT else "error"
    return {"outcome": outcome, "error_type": failure.error_type, "message": failure.message}
