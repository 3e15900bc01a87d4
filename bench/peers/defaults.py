"""Temporal as it comes: a worker with the SDK's defaults and the SDK's ordinary start and result, behind the bare peers' route.

`python -m bench.peers.defaults PORT TEMPORAL_ADDRESS`.
"""

import asyncio
import sys
import uuid

import uvloop
from temporalio.client import Client
from temporalio.worker import Worker

from bench.peers.echo import Body, RegularEcho, echo
from bench.peers.route import serve

_QUEUE = "defaults"


async def _serve(port: int, address: str) -> None:
    client = await Client.connect(address)

    async def run(body: Body) -> Body:
        handle = await client.start_workflow(RegularEcho.run, body, id=f"defaults-{uuid.uuid4().hex}", task_queue=_QUEUE)
        return await handle.result()

    async with Worker(client, task_queue=_QUEUE, workflows=[RegularEcho], activities=[echo]):
        await serve(port, {"/regular": run})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1]), sys.argv[2]))
