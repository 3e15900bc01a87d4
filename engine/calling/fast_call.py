"""A call that is made at once, where it is admitted: decided, made, settled, without a queue and without a mark.

Only what has no effects and is short goes this way, so that all of it may happen again.
"""

import structlog

from engine.calling.attempt import FastAttempt, ForTheQueue
from engine.calling.exchange import Exchange
from engine.calling.intake import Intake
from engine.calling.turn import Interrupted, Turn
from engine.calls.settlement import Settlements
from engine.runtimes.running.supervisor import Supervisor
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.ways import may_ask, needs_no_slot
from toolagent_service.contracts.steps import AdmitRequest, CallPlan, SettleRequest

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class FastCall:
    """Of a tool that is up on this host."""

    def __init__(self, supervisor: Supervisor, exchange: Exchange, settlements: Settlements, intake: Intake, host: str) -> None:
        self._supervisor, self._exchange, self._settlements = supervisor, exchange, settlements
        self._intake, self._host = intake, host

    def takes(self, plan: CallPlan, entry: ToolEntry) -> bool:
        """Whether the call may be made like this: without effects and questions, short, and nothing is to be started for it."""
        return (
            self._intake.is_open
            and not may_ask(plan.listens, entry)
            and needs_no_slot(entry, plan.timeout_s, is_ready=self._supervisor.is_ready(entry))
        )

    async def make(self, plan: CallPlan, entry: ToolEntry, request: AdmitRequest, turn: Turn) -> ToolResult | None:
        """Its result; None where it is to wait in its queue like any other call. Raises Interrupted, StoreUnavailableError."""
        attempt = FastAttempt(plan, entry, self._host)
        try:
            outcome = await self._exchange.make(self._supervisor.call_running, attempt, turn)
        except ForTheQueue:
            return None
        except (Interrupted, StoreUnavailableError):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, nothing has happened, and the queue is there
            _log.warning("fast_call_failed", call_id=plan.call_id, then="it is made as an ordinary one", exc_info=True)
            return None
        settling = SettleRequest(plan=attempt.plan, outcome=outcome, workflow_id=request.workflow_id, run_id=request.run_id)
        return await self._settlements.settle_with(entry, settling, is_unclaimed=request.is_new)
