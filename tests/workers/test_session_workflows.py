"""Which sessions Temporal lists as running, on a real server.

No worker serves their workflows here.
"""

import asyncio
import uuid

from temporalio.client import Client

from toolagent.client import names
from workers.temporal.connection import connect
from workers.temporal.session_workflows import SessionWorkflows


async def test_a_session_is_listed_while_its_workflow_runs(temporal_address: str) -> None:
    client = await connect(temporal_address, "default", sandbox=False, patience_s=120)
    workflows, session = SessionWorkflows(client), ("servers", f"session-{uuid.uuid4().hex}")
    handle = await client.start_workflow(names.TOOL_GROUP, {}, id=names.session_workflow(*session), task_queue="nobody")
    async with asyncio.timeout(60):
        while session not in await workflows.under_way():  # noqa: ASYNC110 - it happens on the server
            await asyncio.sleep(0.1)
        await handle.terminate()
        while session in await workflows.under_way():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.1)


async def test_a_namespace_that_cannot_be_listed_has_no_list(temporal_address: str) -> None:
    assert await SessionWorkflows(await Client.connect(temporal_address, namespace="nowhere")).under_way() == frozenset()
