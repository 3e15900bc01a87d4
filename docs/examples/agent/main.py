"""Runs the agent's worker on its own task queue, starts each of its workflows once, and prints what they give."""

import asyncio
import json
import sys
import uuid

from agent.delegating import DelegatingAgent
from agent.plain import PlainAgent
from agent.typed import TypedAgent
from temporalio.client import Client
from temporalio.worker import Worker

from toolagent.client.plugin import ToolAgentPlugin

TASK_QUEUE = "my-agent"


async def main(address: str) -> None:
    # The plugin brings the data converter that reads and writes the types of toolagent.contracts.
    client = await Client.connect(address, plugins=[ToolAgentPlugin()])
    async with Worker(client, task_queue=TASK_QUEUE, workflows=[PlainAgent, TypedAgent, DelegatingAgent]):
        plain = await client.execute_workflow(PlainAgent.run, "6 * 7", id=f"plain-{uuid.uuid4().hex}", task_queue=TASK_QUEUE)
        show("plain", plain["result"])
        for result in await client.execute_workflow(TypedAgent.run, "2 ** 10", id=f"typed-{uuid.uuid4().hex}", task_queue=TASK_QUEUE):
            show("typed", result.result if result.error is None else {"error": result.error.type, "message": result.error.message})
        told = await client.execute_workflow(DelegatingAgent.run, "conv_001", id=f"sub-{uuid.uuid4().hex}", task_queue=TASK_QUEUE)
        show("summary", {key: value for key, value in told["summary"].items() if key != "call_details"})
        show("brief", told["brief"])


def show(name: str, value: object) -> None:
    sys.stdout.write(f"{name}: {json.dumps(value, ensure_ascii=False)}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7233"))
