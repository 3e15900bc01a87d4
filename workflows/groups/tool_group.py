"""One session of a group, from its launch to its stop.

The session is a task of its own: cancelling the workflow asks for the stop, and does not end the session.
"""

import asyncio
from collections.abc import Callable

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolagent.client import names
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.sessions import AdoptedCall, SessionAccount, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.catalog.lifecycles import lifecycle_fault
from toolagent_service import step_names
from toolagent_service.contracts.sessions import SessionLife, SessionUse
from toolagent_service.groups import sessions
from workflows.groups.session import Session
from workflows.inputs import input_of, malformed, told_of

_STOP_PATIENCE_S = 30.0


@workflow.defn(name=names.TOOL_GROUP)
class ToolGroup:
    def __init__(self) -> None:
        self._session: Session | None = None
        self._living: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> SessionAccount:
        """Takes a `SessionLife` as plain JSON; invalid input fails at once."""
        session = self._session = _session_of(input_of(SessionLife, given, surplus))
        living = self._living = asyncio.create_task(session.live())
        while not (living.done() and workflow.all_handlers_finished()):
            try:
                await workflow.wait_condition(lambda: living.done() and workflow.all_handlers_finished())
            except asyncio.CancelledError:
                session.ask(SessionEnd.CANCELLED)
        living.result()
        if not session.is_over:
            workflow.continue_as_new(session.life)
        return SessionAccount(session=session.view, results=sessions.accounted(session.results))

    @workflow.query(name=names.SESSION)
    def session(self, *_: JsonValue) -> SessionView | None:
        return self._session.view if self._session else None

    @workflow.update(name=names.SESSION)
    async def launched(self, *_: JsonValue) -> SessionView:
        """The session, once it is launched or has ended."""
        session = await self._begun()
        await self._settled(lambda: session.view.state is not SessionState.LAUNCHING)
        return session.view

    @workflow.signal(name=step_names.USE_SESSION)
    async def use(self, *given: JsonValue) -> None:
        """A call outside of the session begins or has ended: a `SessionUse` as plain JSON."""
        if (told := told_of(SessionUse, given)) is not None:
            (await self._begun()).use(told)

    @workflow.signal(name=step_names.STOP_BY)
    async def stop_by(self, *given: JsonValue) -> None:
        """A call of the stop outside of the session: an `AdoptedCall` as plain JSON."""
        if (told := told_of(AdoptedCall, given)) is not None:
            await (await self._begun()).stop_by(told)

    @workflow.signal(name=step_names.RECORD_SESSION)
    async def record(self, *_: JsonValue) -> None:
        """The session has no row."""
        await (await self._begun()).record()

    @workflow.update(name=names.RENEW_SESSION)
    async def renew(self, *_: JsonValue) -> SessionView:
        """The session with a new lease, if it has one."""
        session = await self._begun()
        session.renew()
        return session.view

    @renew.validator
    def _require_open(self, *_: JsonValue) -> None:
        self._require_life()
        if self._session is not None:
            self._session.require_open()

    @workflow.update(name=names.STOP_SESSION)
    async def stop(self, *_: JsonValue) -> SessionView:
        """The session, once it has stopped or the provider takes long."""
        session = await self._begun()
        session.ask(SessionEnd.ASKED)
        try:
            await workflow.wait_condition(
                lambda: session.is_over or self._drains, timeout=_STOP_PATIENCE_S, timeout_summary="answer who asked for the stop"
            )
        except TimeoutError:
            return session.view
        return session.view

    @launched.validator
    @stop.validator
    def _require_life(self, *_: JsonValue) -> None:
        """Refuse updates while the run ends: they would keep it open."""
        if self._drains:
            raise _draining()

    @workflow.update(name=names.RUN_IN_SESSION)
    async def run_in_session(self, given: JsonValue = None, *surplus: JsonValue) -> ToolResult:
        """The result of a run."""
        asked = input_of(SessionRun, given, surplus)
        session = await self._begun()
        await self._settled(lambda: session.view.state is not SessionState.LAUNCHING)
        return await session.ran(asked, sessions.run_named(asked.key or str(workflow.uuid4())), is_new=asked.key is None)

    @run_in_session.validator
    def _require_run(self, given: JsonValue = None, *surplus: JsonValue) -> None:
        """A run refused here is not in the history."""
        asked, session = input_of(SessionRun, given, surplus), self._session
        if session is None:
            return
        if session.is_full:
            raise _draining()
        session.require_open()
        session.require_step(asked)

    @property
    def _drains(self) -> bool:
        """Whether the workflow only waits to continue as a new run."""
        return self._session is not None and not self._session.is_over and self._living is not None and self._living.done()

    async def _settled(self, is_so: Callable[[], bool]) -> None:
        """Wait until the condition holds. Raises ApplicationError if the next run must answer."""
        await workflow.wait_condition(lambda: is_so() or self._drains)
        if self._drains:
            raise _draining()

    async def _begun(self) -> Session:
        """The session. An update that comes with the start may be handled before `run`."""
        while self._session is None:
            await workflow.wait_condition(lambda: self._session is not None)
        return self._session


def _draining() -> ApplicationError:
    return ApplicationError("This run of the session takes no more; ask again.", type=names.SESSION_DRAINS)


def _session_of(life: SessionLife) -> Session:
    group = life.request.group
    fault = lifecycle_fault(group) if group.lifecycle else "it has no lifecycle; its tools are called one by one"
    if fault is not None:
        raise malformed(f"Group {group.group_id!r}: {fault}.")
    workflow.upsert_search_attributes([names.GROUP_ID.value_set(group.group_id), names.TASK_TYPE.value_set("session")])
    return Session(life)
