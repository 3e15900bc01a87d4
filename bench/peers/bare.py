"""The bare thing: Temporal workflows behind minimal routes, worker and server in one process.

`python -m bench.peers.bare PORT TEMPORAL_ADDRESS TOOL_URL [MODEL_URL QUESTION]`. It keeps no records, checks nothing and
knows one tool, and one question to a model, which is in the file `QUESTION`.
"""

import asyncio
import itertools
import sys
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import uvloop
from temporalio import activity, workflow
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from bench.peers.echo import Body, echo
from bench.peers.model import Model
from bench.peers.route import Run, serve

_QUEUE = "bare"
_STEP = timedelta(seconds=30)
_UPDATES_A_LIFE = 500
"""A living workflow gets this many updates, then the next one is born: histories stay short, as continuing as new would keep them."""


class HttpTool:
    """The request every way of calling the tool makes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = httpx.AsyncClient(limits=httpx.Limits(max_connections=100, keepalive_expiry=2), timeout=30, trust_env=False)

    @activity.defn
    async def call_http(self, body: Body) -> Body:
        answer = await self._http.post(self._url, json=body)
        answer.raise_for_status()
        return answer.json()


@workflow.defn
class LocalEcho:
    @workflow.run
    async def run(self, body: Body) -> Body:
        return await workflow.execute_local_activity(echo, body, start_to_close_timeout=_STEP)


@workflow.defn
class RegularHttp:
    @workflow.run
    async def run(self, body: Body) -> Body:
        return await workflow.execute_activity_method(HttpTool.call_http, body, start_to_close_timeout=_STEP)


@workflow.defn
class Living:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def say(self, body: Body) -> Body:
        return await workflow.execute_local_activity(echo, body, start_to_close_timeout=_STEP)

    @workflow.update
    async def ask(self, body: Body) -> Body:
        return await workflow.execute_activity_method(Model.ask_model, body, start_to_close_timeout=_STEP)


def _starting(client: Client, kind: Callable[..., Awaitable[Body]]) -> Run:
    async def run(body: Body) -> Body:
        return await client.execute_workflow(kind, body, id=f"bare-{uuid.uuid4().hex}", task_queue=_QUEUE, request_eager_start=True)

    return run


def _updating(client: Client, update: workflow.UpdateMethodMultiParam[[Living, Body], Body]) -> Run:
    """Of one workflow, or of the one that the body names as its `own`."""
    born, numbers = uuid.uuid4().hex, defaultdict[object, Iterator[int]](itertools.count)

    async def run(body: Body) -> Body:
        own = body.get("own", "all")
        start = WithStartWorkflowOperation(
            Living.run,
            id=f"living-{born}-{own}-{next(numbers[own]) // _UPDATES_A_LIFE}",
            task_queue=_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        return await client.execute_update_with_start_workflow(update, body, start_workflow_operation=start)

    return run


async def _serve(port: int, address: str, tool_url: str, *question: str) -> None:
    client = await Client.connect(address)
    tool = HttpTool(tool_url)
    asking = [Model(question[0], Path(question[1])).ask_model] if question else []
    runs = {
        "/local": _starting(client, LocalEcho.run),
        "/http": _starting(client, RegularHttp.run),
        "/update": _updating(client, Living.say),
        "/ask": _updating(client, Living.ask),
    }
    worker = Worker(
        client,
        task_queue=_QUEUE,
        workflows=[LocalEcho, RegularHttp, Living],
        activities=[echo, tool.call_http, *asking],
        workflow_runner=UnsandboxedWorkflowRunner(),
        workflow_task_executor=ThreadPoolExecutor(2),
    )
    async with worker:
        await serve(port, runs)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1]), *sys.argv[2:]))
