"""Runs the agent's worker on its own namespace and task queue, starts its workflow once, and prints what it gives."""

import asyncio
import json
import sys
import uuid
from datetime import timedelta

from agent import FarAgent
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from toolagent import ToolAgentPlugin

NAMESPACE, TASK_QUEUE = "my-agents", "my-agent"


async def main(address: str) -> None:
    # The plugin brings the data converter that reads and writes the types of toolagent.contracts.
    client = await Client.connect(address, namespace=NAMESPACE, plugins=[ToolAgentPlugin()])
    await make_namespace(client)
    async with Worker(client, task_queue=TASK_QUEUE, workflows=[FarAgent]):
        told = await client.execute_workflow(FarAgent.run, "6 * 7", id=f"far-{uuid.uuid4().hex}", task_queue=TASK_QUEUE)
    for name, value in told.items():
        sys.stdout.write(f"{name}: {json.dumps(value, ensure_ascii=False)}\n")


async def make_namespace(client: Client) -> None:
    """Yours is there already; this one is made, and the server takes some seconds until it knows it everywhere."""
    kept = Duration(seconds=int(timedelta(days=1).total_seconds()))
    try:
        await client.workflow_service.register_namespace(
            RegisterNamespaceRequest(namespace=NAMESPACE, workflow_execution_retention_period=kept)
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7233"))
