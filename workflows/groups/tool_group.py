"""A group of tools in use: one session, from its launch to its stop.

Its life is a task beside the workflow's own: cancelling the workflow asks for the stop, and cannot end it.
"""

import asyncio
from collections.abc import Callable

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.sessions import AdoptedCall, SessionAccount, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.catalog.lifecycles import lifecycle_fault
from toolagent_service import step_names
from toolagent_service.contracts.sessions import SessionLife, SessionUse
from toolagent_service.groups import sessions
from workflows.groups.session import Session
from workflows.inputs import input_of, told_of

_STOP_PATIENCE_S = 30.0


@workflow.defn(name=names.TOOL_GROUP)
class ToolGroup:
    def __init__(self) -> None:
        self._session: Session | None = None
        self._living: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> SessionAccount:
        """Takes a `SessionLife` as plain JSON; what is none fails at once."""
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
        """As soon as it is launched, or has ended."""
        session = await self._begun()
        await self._settled(lambda: session.view.state is not SessionState.LAUNCHING)
        return session.view

    @workflow.signal(name=step_names.USE_SESSION)
    async def use(self, *given: JsonValue) -> None:
        """A call that somebody makes by itself begins or has ended: a `SessionUse` as plain JSON."""
        if (told := told_of(SessionUse, given)) is not None:
            (await self._begun()).use(told)

    @workflow.signal(name=step_names.STOP_BY)
    async def stop_by(self, *given: JsonValue) -> None:
        """Somebody's call of the stop: an `AdoptedCall` as plain JSON."""
        if (told := told_of(AdoptedCall, given)) is not None:
            await (await self._begun()).stop_by(told)

    @workflow.update(name=names.RENEW_SESSION)
    async def renew(self, *_: JsonValue) -> SessionView:
        """With its lease begun anew, where it has one."""
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
        """Once it has stopped; or as it is, when the provider takes long."""
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
        """Who goes on asking must not keep a run that does nothing any more."""
        if self._drains:
            raise _draining()

    @workflow.update(name=names.RUN_IN_SESSION)
    async def run_in_session(self, given: JsonValue = None, *surplus: JsonValue) -> ToolResult:
        """A call's result, as of any call."""
        asked = input_of(SessionRun, given, surplus)
        session = await self._begun()
        await self._settled(lambda: session.view.state is not SessionState.LAUNCHING)
        return await session.ran(asked, sessions.run_named(asked.key or str(workflow.uuid4())), is_new=asked.key is None)

    @run_in_session.validator
    def _require_run(self, given: JsonValue = None, *surplus: JsonValue) -> None:
        """What is refused here leaves nothing in the history."""
        asked, session = input_of(SessionRun, given, surplus), self._session
        if session is None:
            return
        if session.is_full:
            raise _draining()
        session.require_open()
        session.require_step(asked)

    @property
    def _drains(self) -> bool:
        """Whether it only waits to go on as a new run."""
        return self._session is not None and not self._session.is_over and self._living is not None and self._living.done()

    async def _settled(self, is_so: Callable[[], bool]) -> None:
        """Once it is so. Raises ApplicationError where the next run has to say."""
        await workflow.wait_condition(lambda: is_so() or self._drains)
        if self._drains:
            raise _draining()

    async def _begun(self) -> Session:
        """An update may come with the start, before it."""
        while self._session is None:
            await workflow.wait_condition(lambda: self._session is not None)
        return self._session


def _draining() -> ApplicationError:
    return ApplicationError("This run of the session takes no more; ask again.", type=names.SESSION_DRAINS)


def _session_of(life: SessionLife) -> Session:
    group = life.request.group
    fault = lifecycle_fault(group) if group.lifecycle else "it has no lifecycle; its tools are called one by one"
    if fault is not None:
        message = f"Group {group.group_id!r}: {fault}."
        raise ApplicationError(message, type=ErrorType.VALIDATION_ERROR.value, non_retryable=True)
    workflow.upsert_search_attributes([names.GROUP_ID.value_set(group.group_id), names.TASK_TYPE.value_set("session")])
    return Session(life)
