"""A task that an existing tool fulfils ends with that tool, and the search for it is limited in time."""

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import workflow

from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.task_specs import BuildTool, Example, GithubDeploy
from toolagent.core.calls.results import failed
from toolagent_service.contracts.making_steps import ExistingTool, Inspected
from workflows.making.answering import answered

REQUEST = MakeRequest(task_id="create_00000001", spec=GithubDeploy(repo_url="https://host/notes", tool_name="notes"))
ASKED = BuildTool(tool_name="slug", description="d", examples=(Example(input={"n": 1}, expected_output={"n": 1}),))
AT = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("found", "tool_ids", "kind"),
    [
        (Inspected(answered_by="notes"), ("notes",), "an active tool 'notes'"),
        (Inspected(answered_by="notes", tool_ids=("notes",)), ("notes",), "an active tool 'notes'"),
        (Inspected(answered_by="notes", tool_ids=("notes_add", "notes_list")), ("notes_add", "notes_list"), "a group 'notes'"),
    ],
)
async def test_what_has_the_name_already_is_named_and_nobody_says_that_it_does_what_is_asked_for(
    found: Inspected, tool_ids: tuple[str, ...], kind: str
) -> None:
    end = await answered(REQUEST, found)
    assert end is not None
    assert end.tool_ids == tool_ids
    assert f"There is {kind} already" in end.reason
    assert "not checked whether" in end.reason
    assert "another tool_name" in end.reason


@dataclass
class Played:
    """A simulated Temporal whose time passes while the workflow waits, and which swallows a cancellation while a child begins, as the real
    one does.
    """

    now_at: datetime = AT
    begun: list[str] = field(default_factory=list[str])
    is_beginning: asyncio.Event = field(default_factory=asyncio.Event)
    ParentClosePolicy = workflow.ParentClosePolicy
    ChildWorkflowCancellationType = workflow.ChildWorkflowCancellationType

    def now(self) -> datetime:
        return self.now_at

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=len(self.begun))

    async def wait(self, _tasks: Sequence[asyncio.Task[object]], *, timeout: float) -> None:
        await self.is_beginning.wait()
        self.now_at += timedelta(seconds=timeout)

    async def start_child_workflow(self, *_given: object, **_options: object) -> asyncio.Future[ToolResult]:
        self.begun.append("call")
        if not self.is_beginning.is_set():
            self.is_beginning.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            if task := asyncio.current_task():
                task.uncancel()
        ended = asyncio.get_running_loop().create_future()
        ended.set_result(failed("call", "a", ToolError(type=ErrorType.CANCELLED, message="m"), AT))
        return ended


async def test_when_the_time_is_over_no_other_tool_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()
    for module in ("workflows.making.answering", "toolagent.client.child"):
        monkeypatch.setattr(f"{module}.workflow", played)
    existing = tuple(ExistingTool(tool_id=name, version="1.0.0") for name in "abc")
    request = MakeRequest(task_id="create_00000001", spec=ASKED)
    assert await answered(request, Inspected(takers=existing)) is None
    async with asyncio.timeout(5):
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    assert played.begun == ["call"]
