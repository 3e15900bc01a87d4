"""The view of a session, recorded with each change of its state."""

from datetime import datetime, timedelta

from temporalio import workflow

from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.sessions import SessionEnd, SessionState, SessionView
from toolagent_service import stubs
from toolagent_service.contracts.sessions import OpenStep, SessionLife, SessionStep
from toolagent_service.contracts.steps import Finished, OfSession
from toolagent_service.groups import sessions
from workflows import options
from workflows.cancelling import despite_cancellation
from workflows.invoke import invoke

_ROW = "row-written-again"
"""Before this patch, a session that a restored database did not know had no row any more."""

OVER = frozenset({SessionState.STOPPED, SessionState.FAILED})


class NotedSession:
    """`end` is why the session ends, once known."""

    def __init__(self, life: SessionLife) -> None:
        self._request, self.end = life.request, life.end
        self.view = life.view or SessionView(
            session_id=life.request.session_id,
            group_id=life.request.group.group_id,
            state=SessionState.LAUNCHING,
            caller=life.request.caller,
            opened_at=workflow.now(),
        )

    @property
    def is_over(self) -> bool:
        return self.view.state in OVER

    def ask(self, end: SessionEnd) -> None:
        self.end = self.end or end
        if not self.is_over:  # visible at once, however long the current step takes
            self.view = self.view.model_copy(update={"end": self.end})

    @property
    def _mark(self) -> OfSession:
        return OfSession(group_id=self.view.group_id, session_id=self.view.session_id)

    @property
    def _lease_end(self) -> datetime | None:
        """The end of a lease that begins now."""
        lease_s = self._request.lease_s
        return workflow.now() + timedelta(seconds=lease_s) if lease_s is not None else None

    async def _called(
        self, call: ToolCall, call_id: str, *, is_new: bool = False, instead: Finished | None = None, is_stop: bool = False
    ) -> ToolResult:
        """Make a call of the session, on its host and by the version that it was launched with."""
        version = self.view.versions.get(call.tool_id)
        return await invoke(
            call, call_id, is_new=is_new, prefer=self.view.host, version=version, session=self._mark, instead=instead, is_stop=is_stop
        )

    async def _note(self, *, alert: str = "", **changes: object) -> None:
        self._change(**changes)
        view = self.view
        workflow.set_current_details(f"{view.state}, {view.runs} runs" + (f", ends: {view.end}" if view.end else ""))
        step = SessionStep(group=self._request.group, view=view, alert=alert)
        if await self._written(step) is False and view.launch_call_id is not None and workflow.patched(_ROW):
            await self._open()
            await self._written(step)  # `record` may have been the first to write an earlier view

    async def record(self) -> None:
        """Write the row again if it is missing, because an older database was restored. A row that exists stays as it is."""
        if self.view.launch_call_id is not None and not self.is_over and workflow.patched(_ROW):
            await self._open()

    async def _open(self) -> bool | SessionView:
        step = OpenStep(request=self._request, view=self.view)
        return await despite_cancellation(lambda: workflow.execute_local_activity(stubs.open_session, step, **options.session_note("open")))

    async def _written(self, step: SessionStep) -> bool | None:
        summary = step.view.state.value
        return await despite_cancellation(
            lambda: workflow.execute_local_activity(stubs.note_session, step, **options.session_note(summary))
        )

    def _change(self, **changes: object) -> None:
        self.view = sessions.reckoned(self._request.group, self.view.model_copy(update=changes), workflow.now())
