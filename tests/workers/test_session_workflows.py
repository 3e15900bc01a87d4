"""Which sessions Temporal lists as running, on a real server.

No worker serves their workflows here.
"""

import asyncio
import uuid
from dataclasses import dataclass, field

import pytest
from google.protobuf.message import Message
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse,
)
from temporalio.client import Client

from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.sessions import SessionTable
from engine.upkeep.sessions.sweep import SessionSweep
from tests.temporal_answers import client_of
from tests.workflows.session_paths import group_of, life_of
from toolagent.client import names
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent_service import step_names
from toolagent_service.contracts.sessions import SessionLife
from workers.temporal.connection import connect
from workers.temporal.session_workflows import SessionWorkflows

_RUNNING = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING


@dataclass
class Running:
    """A namespace with so many sessions under way, page by page."""

    count: int
    pages: list[int] = field(default_factory=list[int])
    described: list[str] = field(default_factory=list[str])

    @property
    def workflows(self) -> SessionWorkflows:
        return SessionWorkflows(client_of(list_workflow_executions=self._list, describe_workflow_execution=self._describe))

    def _list(self, request: Message) -> Message:
        assert isinstance(request, ListWorkflowExecutionsRequest)
        first = int(request.next_page_token or 0)
        self.pages.append(request.page_size)
        after = min(first + request.page_size, self.count)
        token = b"%d" % after if after < self.count else b""
        return ListWorkflowExecutionsResponse(executions=[_info(id_of(number)) for number in range(first, after)], next_page_token=token)

    def _describe(self, request: Message) -> Message:
        assert isinstance(request, DescribeWorkflowExecutionRequest)
        self.described.append(request.execution.workflow_id)
        return DescribeWorkflowExecutionResponse(workflow_execution_info=_info(request.execution.workflow_id))


def id_of(number: int) -> str:
    return names.session_workflow("servers", f"session-{number:08}")


def _info(workflow_id: str) -> WorkflowExecutionInfo:
    return WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id=workflow_id, run_id="r"), status=_RUNNING)


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


async def test_a_session_is_asked_for_its_row_while_its_workflow_runs(temporal_address: str) -> None:
    client = await connect(temporal_address, "default", sandbox=False, patience_s=120)
    workflows, session = SessionWorkflows(client), ("servers", f"session-{uuid.uuid4().hex}")
    await workflows.record(*session)
    handle = await client.start_workflow(names.TOOL_GROUP, {}, id=names.session_workflow(*session), task_queue="nobody")
    await workflows.record(*session)
    told = [event async for event in handle.fetch_history_events() if event.HasField("workflow_execution_signaled_event_attributes")]
    await handle.terminate()
    await workflows.record(*session)
    assert [event.workflow_execution_signaled_event_attributes.signal_name for event in told] == [step_names.RECORD_SESSION]


async def test_a_namespace_that_cannot_be_listed_has_no_list(temporal_address: str) -> None:
    assert await SessionWorkflows(await Client.connect(temporal_address, namespace="nowhere")).under_way() == frozenset()


async def test_only_the_list_says_nothing_where_temporal_is_away() -> None:
    workflows = SessionWorkflows(client_of())
    assert await workflows.under_way() == frozenset()
    with pytest.raises(ConnectionError):
        await workflows.is_under_way("servers", "session-00000001")
    with pytest.raises(ConnectionError):
        await workflows.record("servers", "session-00000001")
    with pytest.raises(ConnectionError):
        await workflows.go_on(life_of(group_of(), "session-00000001"))


async def test_a_list_ends_at_ten_thousand_sessions() -> None:
    temporal = Running(10_500)
    assert len(await temporal.workflows.under_way()) == sum(temporal.pages) == 10_000


async def test_sessions_beyond_those_that_are_listed_are_asked_for_one_by_one_and_go_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.temporal.session_workflows._MOST", 3)
    table, temporal = SessionTable(database), Running(5)
    life: SessionLife = life_of(group_of(), "session-00000000")
    for number in range(5):
        session_id = f"session-{number:08}"
        view = SessionView.model_validate(
            {"session_id": session_id, "group_id": "servers", "state": SessionState.READY, "opened_at": "2026-03-26T00:00:00Z"}
        )
        assert await table.open(OpenSession(session_id=session_id, group=life.request.group), view, None)
    sweep = SessionSweep(table, temporal.workflows, EventTable(database))
    for _ in range(2):
        await sweep.run()
    assert sorted(temporal.described[:5]) == [id_of(number) for number in range(5)], "the first round trusts no list"
    assert sorted(temporal.described[5:]) == [id_of(3), id_of(4)]
