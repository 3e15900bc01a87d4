"""One attempt at a call: its mark in the database, and the form of its end."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import JsonValue

from engine.calling.turn import Again, Turn
from engine.calls.endings import Refused, told_of
from engine.calls.file_parameters import FileRefused
from engine.calls.large_results import FittedOutput
from engine.calls.records import record_of
from engine.runtimes.failures import CallFailed, NoSlot, RuntimeFailure
from engine.runtimes.secrecy import masked_text
from engine.store.calls import CallTable
from engine.store.claims import Claim
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ValidationIssue
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.texts import well_formed_contract
from toolagent_service.contracts.steps import CallPlan, Finished

MAX_SENDS = 3
"""How often a request is sent to a repeatable tool if the connection or the worker is lost."""

MAX_TRIES = 3
"""How many attempts at a call may be lost, or fail for an unforeseen reason, with or without a sent request."""

SLOT_PAUSE = timedelta(seconds=1)
"""While a call waits for a slot of its tool, others use its slot of the bucket."""


class AlreadySent(Exception):
    """An earlier attempt sent the request, with an unknown outcome. It may not be sent again, or no more."""


class ForTheQueue(Exception):
    """The tool does not run here, is busy, or was lost: repeating the call is harmless."""


class Attempt:
    """An attempt without a mark, at a call that may be repeated. Knows when its request was sent."""

    def __init__(self, plan: CallPlan, entry: ToolEntry, host: str) -> None:
        self.plan, self.entry, self._host = plan, entry, host
        self._sent_at: datetime | None = None

    @property
    def left_s(self) -> float:
        """Seconds for the tool."""
        return self.plan.timeout_s

    @property
    def was_sent(self) -> bool:
        return self._sent_at is not None

    async def before_send(self) -> None:
        self._sent_at = now()

    async def after_not_sent(self) -> None:
        self._sent_at = None

    def after_failure(self, failure: RuntimeFailure) -> Finished:
        """The end of the call by this failure. Raises if another attempt may succeed."""
        return self.failed(failure)

    def answered(self, fitted: FittedOutput, duration_s: float, active_source: int) -> Finished:
        return Finished(
            output=fitted.output,
            is_reference=fitted.is_reference,
            execution_time=duration_s,
            started_at=self._sent_at,
            active_source=active_source,
            host=self._host,
        )

    def failed(self, failure: RuntimeFailure) -> Finished:
        """The failure as the error of the call."""
        details = failure.details if self._sent_at else {**failure.details, "sent": False}
        if isinstance(failure, CallFailed) and failure.outcome == "unknown":
            details = {**details, "outcome": "unknown"}
        elif failure.error_type is ErrorType.OUTPUT_VALIDATION_ERROR:
            details = {**details, "outcome": "executed"}
        issues = _issues_of(failure) if failure.error_type is ErrorType.VALIDATION_ERROR else ()
        return self.refused(Refused(failure.error_type, failure.message, details, issues))

    def file_refused(self, refusal: FileRefused, secrets: Sequence[str]) -> Finished:
        """The refusal of a file, without `secrets`: a parameter before the request was sent, an output after that."""
        told = {"outcome": "executed"} if self._sent_at else {"sent": False}
        path, message = (masked_text(text, secrets) for text in (refusal.path, refusal.issues[0].message))
        shown = FileRefused(refusal.error.type, path, message)
        return self.refused(Refused(shown.error.type, shown.error.message, {"path": path, **told}, shown.issues))

    def refused(self, refusal: Refused) -> Finished:
        return Finished(
            error=well_formed_contract(refusal.error),
            validation_errors=refusal.issues,
            execution_time=(now() - self._sent_at).total_seconds() if self._sent_at else 0.0,
            started_at=self._sent_at,
            host=self._host,
        )

    def cancelled(self, tool: str | None) -> Finished:
        """`tool`: what became of the tool after its connection was closed."""
        if self._sent_at is None:
            return self.refused(Refused(ErrorType.CANCELLED, "The call was cancelled before it was sent.", {"sent": False}))
        ended = "its processes were ended, with all they had started" if tool == "processes_ended" else None
        done = ended or f"the connection was closed ({(tool or 'nothing else done').replace('_', ' ')})"
        message = f"The call was cancelled while the tool worked; {done}."
        return self.refused(Refused(ErrorType.CANCELLED, message, {"sent": True, "outcome": "unknown", "tool": tool}))


class FastAttempt(Attempt):
    """Leaves no mark: the whole call may be repeated."""

    def __init__(self, plan: CallPlan, entry: ToolEntry, host: str) -> None:
        super().__init__(plan.model_copy(update={"fast": True}), entry, host)

    def after_failure(self, failure: RuntimeFailure) -> Finished:
        if isinstance(failure, NoSlot) or (is_lost(failure) and self.plan.repeatable):
            raise ForTheQueue(self.plan.tool_id) from failure
        return self.failed(failure)


class QueuedAttempt(Attempt):
    """Commits `sent_at` before it sends the request."""

    def __init__(self, plan: CallPlan, entry: ToolEntry, host: str, calls: CallTable, turn: Turn, claim: Claim | None = None) -> None:
        super().__init__(plan, entry, host)
        self._calls, self._turn, self._claim = calls, turn, claim
        self._sends = 0
        self.was_marked = False
        """Whether `sent_at` was ever committed, and the claim with it."""

    @property
    def left_s(self) -> float:
        """Seconds for the tool, less those of earlier attempts."""
        earlier_s = self._turn.earlier_s
        return round(self.plan.timeout_s - earlier_s, 1) if earlier_s else self.plan.timeout_s

    async def before_start(self) -> None:
        """Raises AlreadySent if `before_send` would, so that no tool is started without need."""
        record = await self._calls.get(self.plan.call_id) if self._turn.tries and not self.plan.repeatable else None
        if record is not None and record.sent_at is not None:
            raise AlreadySent

    async def before_send(self) -> None:
        """Raises AlreadySent if the call is settled, or if an earlier attempt may have reached a tool that may not be asked again."""
        record = await record_of(self.plan, self.entry.manifest, self._turn.workflow_id, self._turn.run_id)
        self._sends = await self._calls.mark_sent(record, again=self.plan.repeatable, claim=self._claim)
        self.was_marked = self.was_marked or self._sends > 0
        if not 0 < self._sends <= MAX_SENDS:
            raise AlreadySent
        self._turn.sending()
        await super().before_send()

    async def after_not_sent(self) -> None:
        """Removes the mark, because nothing was sent. The mark of an earlier attempt stays."""
        if self._sends:
            await self._calls.unmark_sent(self.plan.call_id, self._claim)
            self._sends = 0
        self._turn.not_sent()
        await super().after_not_sent()

    def after_failure(self, failure: RuntimeFailure) -> Finished:
        """A missing slot, or a lost connection to a repeatable tool, leads to another attempt; every other failure is the answer."""
        if isinstance(failure, NoSlot):
            self._turn.only_waited()
            raise Again("no_slot", failure.message, SLOT_PAUSE)
        if is_lost(failure) and self.plan.repeatable and self._sends < MAX_SENDS:
            self._turn.beat()  # the next attempt must know how much time the tool has used
            raise Again("connection_lost", failure.message)
        return self.failed(failure)

    def failed(self, failure: RuntimeFailure) -> Finished:
        """Adds the number of requests: this is the failure of the last, and the outcomes of the others are unknown."""
        ended = super().failed(failure)
        if ended.error is None or self._sends <= 1:
            return ended
        known = ended.error.details if isinstance(ended.error.details, dict) else {}
        return ended.model_copy(update={"error": ended.error.model_copy(update={"details": {**known, "sends": self._sends}})})

    async def unknown(self) -> Finished:
        record = await self._calls.get(self.plan.call_id)
        self._sent_at = record.sent_at if record else None
        message = (
            "An earlier attempt sent the request, and its end is not known: its worker died, or failed (its log says how). "
            "The tool may have acted; it is not asked twice."
        )
        if self._sends > MAX_SENDS:
            message = (
                f"The tool was asked {MAX_SENDS} times, and each time its worker died or failed (its log says how), or the connection "
                "was lost, before there was an answer. The tool may have acted; it is not asked again."
            )
        refusal = Refused(ErrorType.EXECUTION_ERROR, message, {"sent": True, "outcome": "unknown"})
        # The duration is unknown: `sent_at` may be by the clock of another machine.
        return self.refused(refusal).model_copy(update={"execution_time": 0.0})

    def given_up(self) -> Finished:
        """The end after too many attempts. Settling adds whether one of them had sent the request."""
        message = (
            f"The call was attempted {self._turn.tries} times, and no attempt came to its end: each was lost with its worker, or failed "
            "for a reason of ours (the service's log says which). It is not attempted again."
        )
        return self.refused(Refused(ErrorType.EXECUTION_ERROR, message, {"attempts": self._turn.tries}))

    def out_of_time(self) -> Finished:
        """Like `given_up`, if the time is used up."""
        message = f"The {self.plan.timeout_s:g} s of the call were used up by attempts that were lost with their worker or connection."
        return self.refused(Refused(ErrorType.TIMEOUT, message, {"timeout_s": self.plan.timeout_s}))

    def faulted(self, error: Exception) -> Finished:
        """The end by the last unforeseen failure."""
        message = f"The call failed {self._turn.tries + 1} times for a reason of ours: {told_of(error)}"
        return self.refused(Refused(ErrorType.EXECUTION_ERROR, message, {"attempts": self._turn.tries + 1, "cause": type(error).__name__}))


def is_lost(failure: RuntimeFailure) -> bool:
    """Whether the connection broke, so that another request may be answered. Another would start a stopped tool again."""
    is_unknown = isinstance(failure, CallFailed) and failure.outcome == "unknown" and failure.error_type is not ErrorType.TIMEOUT
    return is_unknown and failure.details.get("reason") != "stopped"


def _issues_of(failure: RuntimeFailure) -> tuple[ValidationIssue, ...]:
    """The issues that the tool reported: those of `errors` that have our form; without any, one by its `field` or `path`."""
    listed = failure.details.get("errors")
    if isinstance(listed, list) and (known := [issue for one in listed if (issue := _issue_in(one)) is not None]):
        return tuple(known)
    named = failure.details.get("path") or failure.details.get("field")
    where = named if isinstance(named, str) and named.startswith("$") else f"$.{named}" if isinstance(named, str) else "$"
    return (ValidationIssue(path=where, message=failure.message),)


def _issue_in(told: JsonValue) -> ValidationIssue | None:
    match told:
        case {"path": str() as path, "message": str() as message}:
            return ValidationIssue(path=path, message=message, keyword=str(told.get("keyword") or ""))
        case _:
            return None
