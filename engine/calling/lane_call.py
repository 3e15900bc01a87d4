"""Makes one call in a lane: admits, sends and settles it in this process, with the marks that it needs."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Protocol

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential

from engine.calling.attempt import AlreadySent, Attempt, FastAttempt, ForTheQueue, QueuedAttempt
from engine.calling.exchange import Exchange
from engine.calling.intake import Intake
from engine.calling.lane import BUDGET_S, Flight, Work
from engine.calling.turn import Again, Interrupted, Told, Turn
from engine.calls.admission import Admissions
from engine.calls.placements import OwnCall
from engine.calls.settlement import Settlements
from engine.runtimes.running.supervisor import Supervisor
from engine.store.calls import CallTable, OvertakenError
from engine.store.claims import Claim
from toolagent.contracts.calls import ToolCall, ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.checkers import CheckersBusyError
from toolagent_service.calls.dispatch import bucket_of
from toolagent_service.calls.ways import has_effects, needs_no_slot
from toolagent_service.contracts.steps import AdmitRequest, Admitted, Answered, CallPlan, Placement, SettleRequest

_PASSING = (StoreUnavailableError, CheckersBusyError)
_HERE = Placement(queue="lane")
"""The placement of calls in a lane, which have no queue."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Catalog(Protocol):
    async def renew(self) -> None:
        """Drops outdated entries. Raises StoreUnavailableError."""
        ...


class LaneMaking:
    """`slots`: concurrent calls that need a slot, by bucket; `acts`: whether the lane makes calls with side effects."""

    def __init__(
        self,
        catalog: Catalog,
        admissions: Admissions,
        supervisor: Supervisor,
        exchange: Exchange,
        settlements: Settlements,
        calls: CallTable,
        slots: Mapping[str, int],
        intake: Intake,
        host: str,
        *,
        acts: bool,
    ) -> None:
        self._intake, self._acts = intake, acts
        self._catalog, self._admissions, self._supervisor, self._exchange = catalog, admissions, supervisor, exchange
        self._settlements, self._calls, self._host = settlements, calls, host
        self._slots = {bucket: asyncio.Semaphore(most) for bucket, most in slots.items()}

    def is_ready(self, entry: ToolEntry) -> bool:
        """Whether a new call of the tool may be made here. A draining host takes none."""
        return self._intake.is_open and self._supervisor.is_ready(entry)

    async def prepare(self) -> None:
        await self._catalog.renew()

    async def refuse(self, claim: Claim, call: ToolCall, error: ToolError) -> None:
        """Ends a call that gets no workflow. Raises OvertakenError, StoreUnavailableError."""
        await self._settlements.refuse(claim, call, error)

    async def make(self, flight: Flight, workflow_id: str, run_id: str, work: Work) -> ToolResult | None:
        turn = Turn(1, Told(), lambda _: None, lambda: flight.is_cancelled, workflow_id, run_id)
        request = AdmitRequest(call=flight.call, call_id=flight.call_id, workflow_id=workflow_id, run_id=run_id, is_new=True, alone=True)
        try:
            decision = await self._admissions.admit(request, OwnCall(_HERE, flight.claim, flight.is_accepted))
            if isinstance(decision.admission, Answered):
                return decision.admission.result
            if not isinstance(decision.admission, Admitted) or decision.entry is None:
                return None
            if not self._acts and has_effects(decision.entry):
                return None  # it had none when its door looked
            plan = decision.admission.plan
            attempt = self._attempt(plan, decision.entry, turn, flight)
            return await self._made(attempt, turn, flight, work, self._slot(plan, decision.entry))
        except (StoreUnavailableError, ForTheQueue, Again, Interrupted, AlreadySent, OvertakenError):
            return None
        except Exception:  # noqa: BLE001 - its own workflow bounds how often this is retried
            _log.warning("lane_call_failed", call_id=flight.call_id, then="it gets a workflow of its own", exc_info=True)
            return None

    async def _made(
        self, attempt: Attempt, turn: Turn, flight: Flight, work: Work, slot: AbstractAsyncContextManager[None]
    ) -> ToolResult | None:
        async with slot, work():
            outcome = await self._exchange.make(self._supervisor.call_running, attempt, turn)
        flight.is_settling = True
        # A call with side effects was accepted with its mark, even if the tool was not reached.
        flight.is_accepted = flight.is_accepted or (isinstance(attempt, QueuedAttempt) and attempt.was_marked)
        claim = flight.claim if flight.is_accepted else None
        settling = SettleRequest(plan=attempt.plan, outcome=outcome, workflow_id=turn.workflow_id, run_id=turn.run_id)
        # A move claims the call, and begins before the tool has answered.
        is_unclaimed = claim is None and flight.moving is None
        settle = partial(self._settlements.settle_with, attempt.entry, settling, claim, is_unclaimed=is_unclaimed)
        try:
            return await settle()
        except _PASSING:
            # The answer cannot be had again, so retry until it is recorded.
            return await AsyncRetrying(retry=retry_if_exception_type(_PASSING), wait=wait_exponential(0.2, max=5))(settle)

    def _attempt(self, plan: CallPlan, entry: ToolEntry, turn: Turn, flight: Flight) -> Attempt:
        if has_effects(entry):
            return QueuedAttempt(plan, entry, self._host, self._calls, turn, flight.claim)
        return FastAttempt(plan, entry, self._host)

    def _slot(self, plan: CallPlan, entry: ToolEntry) -> AbstractAsyncContextManager[None]:
        """The slot of a call that would wait in a queue if it had a workflow."""
        if needs_no_slot(entry, plan.timeout_s, is_ready=True):
            return nullcontext()
        return self._taken_slot(bucket_of(entry.manifest, self._slots))

    @asynccontextmanager
    async def _taken_slot(self, bucket: str) -> AsyncGenerator[None]:
        """Raises ForTheQueue if no slot comes free soon: Temporal orders waiting calls by priority."""
        if (slots := self._slots.get(bucket)) is None:
            raise ForTheQueue(bucket)
        try:
            # Not `wait_for`, which loses a cancel that comes together with the slot.
            async with asyncio.timeout(BUDGET_S):
                await slots.acquire()
        except TimeoutError:
            raise ForTheQueue(bucket) from None
        try:
            yield
        finally:
            slots.release()
