"""The end of a call that waited in a queue, recorded by the attempt that knows it: nobody waits for the workflow's next step."""

import asyncio

import structlog

from engine.calls.settlement import Settlements, without_output
from engine.calls.steps import Steps
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.checkers import CheckersBusyError
from toolagent_service.contracts.steps import CallPlan, CallRequest, Finished, SettleRequest

_PATIENCE_S = 5.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PromptSettlement:
    """Settles what can be settled at once. Everything else is left to the workflow's own step, which may be repeated, and is bounded."""

    def __init__(self, settlements: Settlements, steps: Steps) -> None:
        self._settlements, self._steps = settlements, steps

    async def settled(self, request: CallRequest, outcome: Finished) -> Finished:
        """The outcome, with the result that stands if it was recorded. A cancel comes too late: the call has ended."""
        if request.workflow_id is None:
            return outcome
        settling = asyncio.create_task(self._settled(request.plan, request.workflow_id, request.run_id, outcome))
        while not settling.done():
            try:
                await asyncio.wait((settling,))
            except asyncio.CancelledError:
                continue
        return settling.result()

    async def _settled(self, plan: CallPlan, workflow_id: str, run_id: str, outcome: Finished) -> Finished:
        request = SettleRequest(plan=plan, outcome=outcome, workflow_id=workflow_id, run_id=run_id)
        try:
            async with asyncio.timeout(_PATIENCE_S), self._steps.under_way("settle", plan.call_id) as lost:
                if lost:
                    return outcome
                result = await self._settlements.settle(request)
        except (StoreUnavailableError, CheckersBusyError, TimeoutError):
            return outcome
        except Exception:  # noqa: BLE001 - whatever it is, the workflow's step bounds how often that is tried
            _log.warning("prompt_settlement_failed", call_id=plan.call_id, then="the workflow settles it", exc_info=True)
            return outcome
        return outcome.model_copy(update={"settled": without_output(result, outcome)})
