"""The attempts at a call that waited in a queue: bounded however they end, and never two requests of what may not be repeated."""

import structlog

from engine.calling.attempt import MAX_TRIES, AlreadySent, QueuedAttempt
from engine.calling.exchange import Exchange
from engine.calling.turn import Again, Interrupted, Turn
from engine.calls.lookup import ToolLookup, entry_in
from engine.runtimes.running.supervisor import Supervisor
from engine.store.calls import CallTable
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.steps import CallPlan, Finished

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
