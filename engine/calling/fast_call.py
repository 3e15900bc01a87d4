"""Calls that run where they are admitted, without a queue.

`FastCall` makes short calls without side effects. It records nothing before the call, because repeating it is harmless. `BegunCalls` begins
a call that takes a slot, with a mark like its attempt, and an activity continues it if it takes longer.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Protocol

import structlog

from engine.calling.attempt import SLOT_PAUSE, AlreadySent, FastAttempt, ForTheQueue, QueuedAttempt
from engine.calling.exchange import Exchange
from engine.calling.intake import Intake
from engine.calling.queued_call import PromptSettlement, with_result
from engine.calling.turn import Again, Interrupted, Told, Turn
from engine.calls.effects.ended import UsualDurations
from engine.calls.settlement import Settlements
from engine.runtimes.failures import NoSlot, NotSent, RuntimeFailure
from engine.runtimes.running.supervisor import Supervisor
from engine.store.calls import CallTable
from engine.uncancelled import ended
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.ways import may_ask, may_begin, needs_no_slot
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, CallPlan, CallRequest, Finished, SettleRequest

_SLOT_S = 0.1
"""How long a new call waits for a slot here. After that, it waits in Temporal's queue, by priority."""

_SLOT_PATIENCE_S = 2.0
"""How long an attempt waits for a slot that begun calls hold."""

_BUDGET_S = 0.5
"""How long admission waits for a call: until then it cannot be cancelled, and shows no progress."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class FastCall:
    """Makes calls of tools that are up on this host."""

    def __init__(self, supervisor: Supervisor, exchange: Exchange, settlements: Settlements, intake: Intake, host: str) -> None:
        self._supervisor, self._exchange, self._settlements = supervisor, exchange, settlements
        self._intake, self._host = intake, host

    def takes(self, plan: CallPlan, entry: ToolEntry) -> bool:
        """Whether the call is short, without effects and questions, and its tool is up."""
        return (
            self._intake.is_open
            and not may_ask(plan.listens, entry)
            and needs_no_slot(entry, plan.timeout_s, is_ready=self._supervisor.is_ready(entry))
        )

    async def make(self, plan: CallPlan, entry: ToolEntry, request: AdmitRequest, turn: Turn) -> ToolResult | None:
        """The result; None: the call goes to its queue. Raises Interrupted, StoreUnavailableError."""
        attempt = FastAttempt(plan, entry, self._host)
        try:
            outcome = await self._exchange.make(self._supervisor.call_running, attempt, turn)
        except ForTheQueue:
            return None
        except (Interrupted, StoreUnavailableError):
            raise
        except Exception:  # noqa: BLE001 - nothing has happened, and the queue can make the call
            _log.warning("fast_call_failed", call_id=plan.call_id, then="it is made as an ordinary one", exc_info=True)
            return None
        settling = SettleRequest(plan=attempt.plan, outcome=outcome, workflow_id=request.workflow_id, run_id=request.run_id)
        return await self._settlements.settle_with(entry, settling, is_unclaimed=request.is_new)


class Grace(Protocol):
    """The work in progress of this process: an ordered stop waits for it."""

    @property
    def takes_calls(self) -> bool: ...

    def held(self) -> AbstractContextManager[None]: ...


class BegunCalls:
    """Begins calls of tools on this host where they are admitted. They share the slots of the host's own queues, by bucket, with the
    attempts from these queues.

    There is one begun call for each call id. If its end is not recorded within the budget, the attempt of its workflow waits for it. If
    this process dies before, the mark says that the request may have been sent.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        exchange: Exchange,
        calls: CallTable,
        settlement: PromptSettlement,
        durations: UsualDurations,
        slots: Mapping[str, int],
        intake: Intake,
        grace: Grace,
        host: str,
        *,
        budget_s: float = _BUDGET_S,
    ) -> None:
        self._supervisor, self._exchange, self._calls, self._settlement = supervisor, exchange, calls, settlement
        self._durations, self._intake, self._grace, self._host, self._budget_s = durations, intake, grace, host, budget_s
        self._slots = {f"{host}/{bucket}": asyncio.Semaphore(most) for bucket, most in slots.items()}
        self._begun: dict[str, _Begun] = {}

    def takes(self, plan: CallPlan, entry: ToolEntry, request: AdmitRequest) -> bool:
        """Whether the call may begin here: it would wait in this host's own queue, its tool is up, and it asks nothing."""
        manifest = entry.manifest
        return (
            plan.placement.host == self._host
            and request.session is None
            and request.prefer is None
            and self._is_open
            and not may_ask(plan.listens, entry)
            and may_begin(is_ready=self._supervisor.is_ready(entry), quick_s=self._durations.quick(manifest.tool_id, manifest.version))
        )

    @property
    def _is_open(self) -> bool:
        return self._intake.is_open and self._grace.takes_calls

    async def begin(self, admitted: Admitted, entry: ToolEntry, request: AdmitRequest) -> Admission:
        """The answer; or a plan: an attempt makes the call, or waits for its end."""
        return admitted if await self._begin(admitted.plan, entry, request) is None else await self.known(request) or admitted

    async def known(self, request: AdmitRequest) -> Admission | None:
        """Like `begin`, for a call that this run of its workflow has begun here; else None. It reads no database."""
        begun = self._begun.get(request.call_id)
        if begun is None or begun.request.run_id != request.run_id:
            return None
        await asyncio.wait((begun.task,), timeout=self._budget_s)
        if not begun.task.done() or (begun.outcome is not None and begun.result is None):
            return Admitted(plan=begun.plan, is_begun=True)
        self._forget(begun)
        return Admitted(plan=begun.plan) if begun.result is None else Answered(result=begun.result)

    async def joined(self, request: CallRequest, turn: Turn) -> Finished | None:
        """The end of the call, if it was begun here; None: it must be made. Raises Interrupted."""
        begun = self._begun.get(request.plan.call_id)
        if begun is not None:
            turn.follow(begun.turn)
            await _waited_for(begun, turn, is_cancelled=request.is_cancelled)
            turn.take_over(begun.turn)
            self._forget(begun)
        if begun is not None and begun.outcome is not None:
            # A workflow that does not send its id settles the call itself.
            return with_result(begun.outcome, begun.result if request.workflow_id is not None else None)
        if request.is_cancelled or (begun is not None and begun.is_cancelled):
            # The settlement corrects `sent` by the mark.
            return Finished(error=ToolError(type=ErrorType.CANCELLED, message="The call was cancelled.", details={"sent": False}))
        return None

    @asynccontextmanager
    async def slot(self, plan: CallPlan, turn: Turn) -> AsyncGenerator[None]:
        """Holds the slot of an attempt from this host's own queue. Raises Again, Interrupted."""
        slots = self._slots.get(plan.placement.queue)
        if slots is None:
            yield
            return
        try:
            async with asyncio.timeout(_SLOT_PATIENCE_S):
                await slots.acquire()
        except TimeoutError:
            turn.only_waited()
            raise Again("no_slot", "Calls that began where they were admitted have all slots.", SLOT_PAUSE) from None
        except asyncio.CancelledError:
            if turn.is_call_cancelled:
                raise
            raise Interrupted from None
        try:
            yield
        finally:
            slots.release()

    async def _begin(self, plan: CallPlan, entry: ToolEntry, request: AdmitRequest) -> "_Begun | None":
        slots = self._slots.get(plan.placement.queue)
        if slots is None:
            return None
        try:
            async with asyncio.timeout(_SLOT_S):
                await slots.acquire()
        except TimeoutError:
            return None
        if (known := self._begun.get(plan.call_id)) is not None:
            slots.release()
            return known
        if not self._is_open:
            # The host began to drain, or the process to stop, while the call waited for its slot.
            slots.release()
            return None
        begun = self._begun[plan.call_id] = _Begun(plan, request)
        begun.task = asyncio.create_task(self._made(begun, entry, slots), name=f"begun {plan.call_id}")
        begun.task.add_done_callback(lambda _: self._forget_later(begun))
        return begun

    async def _made(self, begun: "_Begun", entry: ToolEntry, slot: asyncio.Semaphore) -> None:
        attempt = _BegunAttempt(begun.plan, entry, self._host, self._calls, begun.turn)
        with self._grace.held():
            try:
                begun.outcome = await self._exchange.make(self._supervisor.call_running, attempt, begun.turn)
            except (ForTheQueue, Again, AlreadySent, Interrupted, StoreUnavailableError):
                return
            except Exception:  # noqa: BLE001 - attempts bound how often this is retried
                _log.warning("begun_call_failed", call_id=begun.plan.call_id, then="an attempt goes on with it", exc_info=True)
                return
            finally:
                slot.release()
            asked = begun.request
            settling = SettleRequest(plan=begun.plan, outcome=begun.outcome, workflow_id=asked.workflow_id, run_id=asked.run_id)
            begun.result = await self._settlement.recorded(settling, is_unclaimed=asked.is_new)

    def _forget_later(self, begun: "_Begun") -> None:
        """Forgets the call after a while, because the workflow of a terminated call never joins it."""
        if self._begun.get(begun.plan.call_id) is begun:
            begun.timer = asyncio.get_running_loop().call_later(begun.plan.queue_timeout_s, self._forget, begun)

    def _forget(self, begun: "_Begun") -> None:
        if begun.timer is not None:
            begun.timer.cancel()
        if self._begun.get(begun.plan.call_id) is begun:
            del self._begun[begun.plan.call_id]


class _Begun:
    """`outcome` is None while the call runs, and if it is left to an attempt; `result` is the recorded one."""

    def __init__(self, plan: CallPlan, request: AdmitRequest) -> None:
        self.plan, self.request = plan, request
        self.turn = Turn(1, Told(), lambda _: None, lambda: self.is_cancelled, request.workflow_id, request.run_id)
        self.is_cancelled = False
        self.outcome: Finished | None = None
        self.result: ToolResult | None = None
        self.task: asyncio.Task[None]
        self.timer: asyncio.TimerHandle | None = None

    def cancel(self, *, is_of_call: bool = True) -> None:
        """Ends the call, unless the tool has answered."""
        if not self.is_cancelled and self.outcome is None:
            self.is_cancelled = is_of_call
            self.task.cancel()


class _BegunAttempt(QueuedAttempt):
    """Leaves a request that was not sent to an attempt, which may start the tool anew."""

    def after_failure(self, failure: RuntimeFailure) -> Finished:
        is_stopped = failure.details.get("reason") == "stopped"
        if isinstance(failure, NotSent) and not isinstance(failure, NoSlot) and not is_stopped:
            raise ForTheQueue(self.plan.tool_id) from failure
        return super().after_failure(failure)


async def _waited_for(begun: _Begun, turn: Turn, *, is_cancelled: bool) -> None:
    """Waits for the end of the call. If the attempt is interrupted, the call ends too: raises Interrupted."""
    if is_cancelled:
        begun.cancel()
    try:
        await asyncio.wait((begun.task,))
    except asyncio.CancelledError:
        if begun.outcome is not None:
            return  # the answer stands, and is recorded here or by the workflow
        is_of_call = turn.is_call_cancelled
        begun.cancel(is_of_call=is_of_call)
        await ended(begun.task)
        if not is_of_call and begun.outcome is None:
            raise Interrupted from None
