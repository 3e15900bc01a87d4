"""Attempts at a call that waited in a queue.

Their number is bounded, and a call that may not be repeated is sent once.

The attempt that knows the end of the call records it, so that no one waits for the next step of the workflow.
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
"""How long recording may take before it is left to the workflow. Until then only this process has the answer."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class QueuedCall:
    """Commits `sent_at` before it sends a request to a tool that is not repeatable. An attempt that finds `sent_at` does not send."""

    def __init__(self, lookup: ToolLookup, supervisor: Supervisor, exchange: Exchange, calls: CallTable, host: str) -> None:
        self._lookup, self._supervisor, self._exchange = lookup, supervisor, exchange
        self._calls, self._host = calls, host

    async def attempt(self, plan: CallPlan, turn: Turn) -> Finished:
        """Returns errors of the tool and of the caller. Raises what another attempt may mend: Again, Interrupted, StoreUnavailableError,
        and unforeseen errors, up to MAX_TRIES times.
        """
        try:
            return await self._attempted(plan, turn)
        except StoreUnavailableError:
            # An outage of the database does not count as a try.
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
                turn.beat()  # the next attempt must know how much time the tool has used
                raise
            _log.exception("call_failed_for_the_last_time", call_id=plan.call_id)
            return attempt.faulted(error)


class PromptSettlement:
    """Settles a call at once if possible. Otherwise a step of the workflow does it, with bounded retries."""

    def __init__(self, settlements: Settlements, steps: Steps) -> None:
        self._settlements, self._steps = settlements, steps

    async def settled(self, request: CallRequest, outcome: Finished) -> Finished:
        """The outcome, with the recorded result if there is one."""
        if request.workflow_id is None or outcome.settled is not None:
            return outcome
        settling = SettleRequest(plan=request.plan, outcome=outcome, workflow_id=request.workflow_id, run_id=request.run_id)
        return with_result(outcome, await self.recorded(settling))

    async def recorded(self, request: SettleRequest, *, is_unclaimed: bool = False) -> ToolResult | None:
        """The recorded result; None if recording failed. A cancel is too late, because the call has ended."""
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
        except Exception:  # noqa: BLE001 - the workflow's step bounds how often this is retried
            _log.warning("prompt_settlement_failed", call_id=call_id, then="the workflow settles it", exc_info=True)
            return None


def with_result(outcome: Finished, result: ToolResult | None) -> Finished:
    """The outcome for the workflow, with the recorded result."""
    return outcome if result is None else outcome.model_copy(update={"settled": without_output(result, outcome), "shown": None})
