"""How long a run is asked for again while its session goes on in a new run of its workflow. Time passes at once here."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.update.v1 import Outcome
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from tests.temporal_answers import client_of
from toolagent.client import names
from toolagent.client.failures import SessionUnreachableError
from toolagent.client.sessions import Sessions
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.sessions import SessionRun
from toolagent.core.calls.results import succeeded

T = TypeVar("T")

_RESULT = succeeded("call-12345678", "work", {"worked": True}, datetime(2026, 3, 26, tzinfo=UTC), execution_time=0.01, metadata={})
_CONVERTER = pydantic_data_converter.payload_converter
_COMPLETED = UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED


class _Hurried(selectors.SelectSelector):
    """Waits for no timer, and counts what it did not wait."""

    ahead_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.ahead_s += timeout or 0.0
        return super().select(0 if timeout is not None else None)


class _HurriedLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._hurried = _Hurried()
        super().__init__(self._hurried)

    def time(self) -> float:
        return super().time() + self._hurried.ahead_s


def hurried(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=_HurriedLoop) as runner:
        return runner.run(work)


class Draining:
    """A session that ends its running calls for so long, before it takes others in a new run."""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s, self._began = lasts_s, asyncio.get_running_loop().time()

    @property
    def waited_s(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    async def ran(self) -> ToolResult:
        client: Client = client_of(update_workflow_execution=self._update)
        return await Sessions(client).run("servers", "session-12345678", SessionRun(key="one"))

    def _update(self, _request: Message) -> Message:
        if self.waited_s < self._lasts_s:
            outcome = Outcome(
                failure=Failure(message="Ask again.", application_failure_info=ApplicationFailureInfo(type=names.SESSION_DRAINS))
            )
        else:
            outcome = Outcome(success=Payloads(payloads=[_CONVERTER.to_payloads([_RESULT])[0]]))
        return UpdateWorkflowExecutionResponse(stage=_COMPLETED, outcome=outcome)


@pytest.mark.parametrize("lasts_s", [0.0, 3.0, 59.0])
def test_a_run_waits_a_minute_for_a_session_that_ends_its_running_calls(lasts_s: float) -> None:
    async def waited() -> float:
        session = Draining(lasts_s)
        assert await session.ran() == _RESULT
        return session.waited_s

    assert lasts_s <= hurried(waited()) < lasts_s + 1.1


def test_a_run_that_a_session_does_not_take_within_a_minute_says_so() -> None:
    async def waited() -> float:
        session = Draining(float("inf"))
        with pytest.raises(SessionUnreachableError, match="Ask again"):
            await session.ran()
        return session.waited_s

    assert 60 <= hurried(waited()) < 62
