"""The attempts at a call that waited in a queue: bounded however they end, and never two requests of what may not be repeated.

The attempt that knows the end of the call records it: nobody waits for the workflow's next step.
"""

import asyncio

import structlog

from engine.calling.attempt import MAX_TRIES, AlreadySent, QueuedAttempt
from engine.calling.exchange import Exchange
from engine.calling.turn import Again, Interrupted, Turn
from engine.calls.lookup import ToolLookup, entry_in
from engine.calls.settlement import Settlements, without_output
from engine.calls.steps import Steps
from engine.runtimes.running.supervisor import Supervisor
from engine.store.calls import CallTable
from engine.uncancelled import ended
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.checkers import CheckersBusyError
from toolagent_service.contracts.steps import CallPlan, CallRequest, Finished, SettleRequest

_PATIENCE_S = 2.0
"""What recording the end of a call may take, about, before it is left to the workflow. So long only this process has the answer."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class QueuedCall:
    """Before a request to a tool that is not repeatable leaves, `sent_at` is committed; an attempt that finds it there does not send."""

    def __init__(self, lookup: ToolLookup, supervisor: Supervisor, exchange: Exchange, calls: CallTable, host: str) -> None:
        self._lookup, self._supervisor, self._exchange = lookup, supervisor, exchange
        self._calls, self._host = calls, host

    async def attempt(self, plan: CallPlan, turn: Turn) -> Finished:
        """What the tool or the caller got wrong is returned. Raises what another attempt may mend: Again, StoreUnavailableError, and
        whatever nobody foresaw, MAX_TRIES times; Interrupted.
        """
        try:
            return await self._attempted(plan, turn)
        except StoreUnavailableError:
            # It is tried until the database is back: that is not the call's fault.
            turn.only_waited()
            raise

    async def _attempted(self, plan: CallPlan, turn: Turn) -> Finished:
        entry = await entry_in(self._lookup, plan.tool_id, plan.version)
        if entry is None:
            message = f"Tool {plan.tool_id!r} was removed before the call was made."
            return Finished(error=ToolError(type=ErrorType.TOOL_NOT_FOUND, message=message, details={"sent": False}))
        attempt = QueuedAttempt(plan, entry, self._host, self._calls, turn)
        if turn.tries >= MAX_TRIES:
            return attempt.given_up()
        if attempt.left_s <= 0:
            return attempt.out_of_time()
        try:
            await attempt.before_start()
            return await self._exchange.make(self._supervisor.call, attempt, turn)
        except AlreadySent:
            return await attempt.unknown()
        except (Again, Interrupted, StoreUnavailableError):
            raise
        except Exception as error:
            if turn.tries + 1 < MAX_TRIES:
                turn.beat()  # the next attempt must know what the tool has had of its time
                raise
            _log.exception("call_failed_for_the_last_time", call_id=plan.call_id)
            return attempt.faulted(error)


class PromptSettlement:
    """Settles what can be settled at once. Everything else is left to the workflow's own step, which may be repeated, and is bounded."""

    def __init__(self, settlements: Settlements, steps: Steps) -> None:
        self._settlements, self._steps = settlements, steps

    async def settled(self, request: CallRequest, outcome: Finished) -> Finished:
        """The outcome, with the result that stands if it was recorded."""
        if request.workflow_id is None or outcome.settled is not None:
            return outcome
        settling = SettleRequest(plan=request.plan, outcome=outcome, workflow_id=request.workflow_id, run_id=request.run_id)
        return with_result(outcome, await self.recorded(settling))

    async def recorded(self, request: SettleRequest, *, is_unclaimed: bool = False) -> ToolResult | None:
        """The result that stands; None where it is not recorded. A cancel comes too late: the call has ended."""
        settling = asyncio.create_task(self._recorded(request, is_unclaimed=is_unclaimed))
        await ended(settling)
        return settling.result()

    async def _recorded(self, request: SettleRequest, *, is_unclaimed: bool) -> ToolResult | None:
        call_id = request.plan.call_id
        try:
            async with asyncio.timeout(_PATIENCE_S), self._steps.under_way("settle", call_id) as lost:
                return None if lost else await self._settlements.settle(request, is_unclaimed=is_unclaimed)
        except (StoreUnavailableError, CheckersBusyError, TimeoutError):
            return None
        except Exception:  # noqa: BLE001 - whatever it is, the workflow's step bounds how often that is tried
            _log.warning("prompt_settlement_failed", call_id=call_id, then="the workflow settles it", exc_info=True)
            return None


def with_result(outcome: Finished, result: ToolResult | None) -> Finished:
    """As the workflow is told of it: what the tool says of its answer stands in the result."""
    return outcome if result is None else outcome.model_copy(update={"settled": without_output(result, outcome), "shown": None})
