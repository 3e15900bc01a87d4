"""The three clients in the form that the conformance suite asks for."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

from toolagent.client.failures import CallRefusedError
from toolagent.client.http import Refused, ToolAgentHttp
from toolagent.client.http_calls import HttpCalls
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import BatchResult, ToolBatch
from toolagent.contracts.calls import CallMode, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.contracts.tasks import TaskView
from toolagent.testing.fake_client import FakeToolAgentClient

__all__ = ["OverHttp", "OverTemporal"]

BOUND_S = 60.0


@dataclass(frozen=True)
class OverTemporal:
    client: ToolAgentClient | FakeToolAgentClient

    async def run(self, call: ToolCall) -> ToolResult:
        try:
            return await self.client.run(call)
        except CallRefusedError as error:
            return error.result

    async def start(self, call: ToolCall) -> str:
        return (await self.client.start(call)).call_id

    async def ended(self, call_id: str) -> TaskView:
        handle = self.client.handle(call_id)
        await handle.result()
        view = await handle.task()
        assert view is not None
        return view.model_copy(update={"ended_at": None})

    async def task(self, call_id: str) -> TaskView | None:
        return await self.client.handle(call_id).task()

    async def cancel(self, call_id: str) -> bool:
        return await self.client.handle(call_id).cancel()

    async def run_batch(self, batch: ToolBatch) -> BatchResult | ToolResult:
        try:
            return await self.client.run_batch(batch)
        except CallRefusedError as error:
            return error.result


@dataclass(frozen=True)
class OverHttp:
    service: ToolAgentHttp

    async def run(self, call: ToolCall) -> ToolResult:
        return await HttpCalls(self.service).run(call)

    async def start(self, call: ToolCall) -> str:
        answer = await asyncio.to_thread(self.service.run, call.model_copy(update={"mode": CallMode.ASYNC}))
        assert isinstance(answer, TaskAccepted)
        return answer.task_id

    async def ended(self, call_id: str) -> TaskView:
        async with asyncio.timeout(BOUND_S):
            while True:
                view = await self.task(call_id)
                assert view is not None
                if view.result is not None:
                    return view
                await asyncio.sleep(0.05)

    async def task(self, call_id: str) -> TaskView | None:
        try:
            return await asyncio.to_thread(self.service.task, call_id)
        except Refused as refused:
            if refused.problem.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    async def cancel(self, call_id: str) -> bool:
        try:
            await asyncio.to_thread(self.service.cancel, call_id)
        except Refused as refused:
            if refused.problem.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    async def run_batch(self, batch: ToolBatch) -> BatchResult | ToolResult:
        try:
            answer = await asyncio.to_thread(self.service.run_batch, batch)
        except Refused as refused:
            error = ToolError(type=ErrorType(refused.problem.type), message=str(refused), details=refused.problem.details)
            return ToolResult(status="error", error=error, error_type=error.type)
        assert isinstance(answer, BatchResult)
        return answer
