"""One session of a group: launch, runs, and a stop that always comes and is confirmed by the provider."""

import asyncio
from datetime import timedelta

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.groups import GroupRole, GroupStep, VerifyProbe
from toolagent.contracts.sessions import AdoptedCall, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import failed
from toolagent_service import stubs
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.contracts.steps import Finished
from toolagent_service.groups import sessions
from toolagent_service.groups.roles import first_stop
from toolagent_service.groups.sessions import NoSuchFieldError, the_step
from workflows import options
from workflows.cancelling import despite_cancellation, ended
from workflows.groups.limited import LimitedSession
from workflows.groups.looks import is_unlisted, look
from workflows.groups.steps import required_step
from workflows.invoke import CANCELLED_BEFORE, adopted, tell

_BESIDE = "script-beside-limits"
"""Before this patch, the end and the limits of a session waited for the current run of its script."""

_BOUND = "bound-launch"
"""Before this patch, limits did not end a launch, a session called the active versions of its tools, and each run set a new timer."""

_ANSWERED_ONCE = "stops-answered-once"
"""Before this patch, a call of the stop that came too late was answered again for each other one."""

_BY_OUTCOME = "launched-by-outcome"
"""Before this patch, a refused launch was not looked for, even if its outcome was unknown."""

_ENDED_IN_LAUNCH = ToolError(type=ErrorType.CANCELLED, message="The session was ended while it launched.", details={"outcome": "unknown"})
_NOT_KNOWN = "It is not known whether anything was launched: the provider does not say. It was asked {} times, and is asked again."


class Session(LimitedSession):
    """Runs as a task of its workflow that cancelling does not reach. `ask` ends it, for the first reason given.

    `is_full`: the workflow must continue as a new run.
    """

    def __init__(self, life: SessionLife) -> None:
        super().__init__(life)
        self.results: list[ToolResult] = []
        self.is_full = False
        self._confirmed: Finished | None = None
        self._unlaunched = ""
        """Why the last launch failed."""
        self._stops, self._answered = list(life.stops), set[str]()
        self._looks, self._made_before = (life.looks, life.unseen), life.made
        self._order = asyncio.Lock()

    @property
    def life(self) -> SessionLife:
        """The input of the next run of the workflow."""
        return SessionLife(
            request=self._request,
            view=self.view,
            end=self.end,
            uses=self._uses,
            stops=tuple(self._stops),
            looks=self._looks[0],
            unseen=self._looks[1],
            made=self._made_before + len(self.results),
        )

    async def stop_by(self, asked: AdoptedCall) -> None:
        """A call of the stop made outside of the session. The session makes it, or it gets the answer of the earlier stop."""
        if self.is_over:
            await self._answer(asked)
            await tell(asked)
            return
        if all(known.call_id != asked.call_id for known in self._stops):
            self._stops.append(asked)
        self.ask(SessionEnd.ASKED)

    def require_open(self) -> None:
        """Raises ApplicationError if the session takes no runs."""
        if self.end is not None or self.view.state not in {SessionState.LAUNCHING, SessionState.READY}:
            state = SessionState.STOPPING if self.view.state is SessionState.READY else self.view.state
            message = f"Session {self.view.session_id} takes no runs: it is {state}. Open another one."
            raise ApplicationError(message, type=names.SESSION_OVER, non_retryable=True)

    def require_step(self, asked: SessionRun) -> GroupStep:
        """The step of a run. Raises ApplicationError."""
        return required_step(self._request.group, asked)

    async def live(self) -> None:
        """Returns at the end of the session, or when its workflow must continue as a new run."""
        self._is_bound = workflow.patched(_BOUND)
        if self.view.state is SessionState.LAUNCHING:
            await self._launch()
        if self.view.state is SessionState.READY:
            await self._ready()
        if self.view.state is SessionState.STOPPING:
            await self._stopped()
        while self.is_over and self._stops:
            await self._answer(*self._stops)
            await tell(self._stops.pop())
        if self.is_over:
            earlier = list(enumerate(self._request.runs or ()))[: self._made_before]
            self.results = [await self._made_earlier(place, asked) for place, asked in earlier] + self.results

    async def _launch(self) -> None:
        asked, known = self.view.launch_call_id, await self._open()
        if isinstance(known, SessionView):
            self._take(known)
            if known.state is not SessionState.LAUNCHING:
                return
        elif not known:
            most = self._request.group.limits.max_sessions
            live = "One session of this group lives" if most == 1 else f"{most} sessions of this group live"
            message = f"{live} already. Stop one, or come again."
            await self._fail(SessionEnd.REFUSED, ToolError(type=ErrorType.REJECTED, message=message))
            return
        if not self._is_bound:
            await self._launches(asked)
            return
        if self.view.launch_call_id is None:
            group = self._request.group
            pinning = despite_cancellation(
                lambda: workflow.execute_local_activity(stubs.pin_versions, group, **options.session_note("versions"))
            )
            self._change(versions=await pinning, lease_ends_at=self._lease_end)
        limits = asyncio.create_task(self._limited())
        try:
            await self._launches(asked)
        finally:
            limits.cancel()

    def _take(self, known: SessionView) -> None:
        """Continue as recorded, because the workflow was reset, or its first task repeated. Its use since then is not known."""
        self.end = known.end or self.end
        self.view = known.model_copy(update={"end": self.end})
        if known.state in {SessionState.LAUNCHING, SessionState.READY}:
            self._change(lease_ends_at=self._lease_end, used_at=workflow.now() if known.used_at else None)
        else:
            self._made_before = known.runs

    async def _launches(self, asked: str | None) -> None:
        """`asked` is the launch that an earlier run of the workflow has begun. A launch that was only recorded may not have begun."""
        noted = self.view.launch_call_id
        if self.end is not None:
            asked = noted
        if asked is not None and await self._is_settled(asked, await self._launch_made(asked, Finished(error=_ENDED_IN_LAUNCH))):
            return
        launches = sessions.launch_ids(self._request)
        for call_id in launches[launches.index(noted) + (noted == asked) if noted in launches else 0 :]:
            if self.end is not None:
                break
            if call_id != noted:
                self._looks = (0, 0)
                await self._note(launch_call_id=call_id, host=None, launched_at=workflow.now() if self._is_bound else None)
            if await self._is_settled(call_id, await self._launch_call(call_id)):
                return
        said = f" The launch ended with: {self._unlaunched}" if self._unlaunched else ""
        if self.end is not None:
            message = "It was ended while it launched; the provider runs nothing of it." if said else "It was ended before it launched."
            await self._fail(self.end, ToolError(type=ErrorType.CANCELLED, message=message + said))
            return
        message = f"The provider knows of no launch ({len(launches)} tried).{said}"
        await self._fail(SessionEnd.LAUNCH_FAILED, ToolError(type=ErrorType.UNAVAILABLE, message=message))

    async def _is_settled(self, call_id: str, result: ToolResult) -> bool:
        """Whether the launch is decided in this run; False if it certainly did not happen, and may be tried again."""
        group, error, host = self._request.group, result.error, sessions.host_of(result) or self.view.host
        self._unlaunched = error.message if error is not None else ""
        if sessions.can_stop(group, result):
            await self._launched_as(result.result, host)
            return True
        if error is not None and not _may_have_launched(result):
            await self._fail(self.end or SessionEnd.LAUNCH_FAILED, error)
            return True
        if group.verify is not None and host != self.view.host:
            await self._note(host=host)  # it is looked for on that host
        found = await self._found(group.verify, call_id) if group.verify is not None else None
        if self.is_full:
            return True
        if found is not None and sessions.is_stoppable(group, found):
            await self._launched_as(found, host)
        elif found is not None or error is None:
            fields = ", ".join(the_step(group, GroupRole.STOP).bindings.values())
            message = f"The launch's answer has not all fields that the stop takes ({fields}). Correct the group's `bindings`, or the tool."
            error = ToolError(type=ErrorType.EXECUTION_ERROR, message=message)
            await self._fail(self.end or SessionEnd.LAUNCH_FAILED, error, alert=f"It cannot be stopped. {error.message}")
            return True
        elif group.verify is None:
            alert = "It is not known whether anything was launched; the group has no `verify`."
            await self._fail(self.end or SessionEnd.LAUNCH_FAILED, error, alert=alert)
            return True
        return found is not None

    async def _launch_call(self, call_id: str) -> ToolResult:
        task = asyncio.create_task(self._launch_made(call_id))
        await workflow.wait_condition(lambda: task.done() or self.end is not None)
        if not task.done():
            task.cancel()
        result = await task
        if self._request.adopts is not None:
            await tell(self._request.adopts)
        return result

    async def _launch_made(self, call_id: str, instead: Finished | None = None) -> ToolResult:
        """The result of a launch. With `instead`, the launch is not made any more, and gets that result unless it has one."""
        request = self._request
        if request.adopts is not None:
            return await adopted(request.adopts, self._mark, instead=instead)
        call = sessions.call_in(request, the_step(request.group, GroupRole.LAUNCH), None, request.params)
        return await self._called(call, call_id, instead=instead)

    async def _found(self, probe: VerifyProbe, call_id: str) -> JsonValue:
        """What the provider runs of a launch whose answer was lost. Asks until it answers, in the next run if this one is full."""
        while not workflow.info().is_continue_as_new_suggested():
            asked, unseen = self._looks
            found = sessions.seen_in(probe, await look(self._request, self.view, probe, call_id, asked), call_id)
            self._looks = asked, unseen = asked + 1, unseen + (found is False)
            # An incomplete answer counts like a missing launch: the rest may come late.
            if unseen == sessions.LOOKS or (found and (asked >= sessions.LOOKS or sessions.is_stoppable(self._request.group, found))):
                return found or None
            if found is None and sessions.is_alert(asked):
                await self._note(alert=_NOT_KNOWN.format(asked))
            # A provider that does not answer may be away for long; one that answers is asked again soon.
            await workflow.sleep(sessions.pause_of((unseen if found is False else asked) - 1), summary="look again")
        self.is_full = True
        return None

    async def _launched_as(self, result: JsonValue, host: str | None = None) -> None:
        at = workflow.now()
        # A session that was ended meanwhile is never ready.
        ended = {"state": SessionState.STOPPING, "end": self.end} if self._is_bound and self.end else {"state": SessionState.READY}
        times = {"launched_at": self.view.launched_at or at, "used_at": at, "lease_ends_at": self._lease_end}
        await self._note(launched=result, host=host, **times, **ended)

    async def _ready(self) -> None:
        script = await self._begun_script()
        while self.end is None and (self._running or script is not None or not self.is_full):
            if await self._watch():
                self.is_full = self._is_used_up
        for task in self._running.values() if self.end is not None else ():
            task.cancel()
        await workflow.wait_condition(lambda: not self._running)
        if script is not None:
            await script
        if self.end is not None:
            await self._note(state=SessionState.STOPPING, end=self.end)

    async def _begun_script(self) -> asyncio.Task[None] | None:
        if self._request.runs is None or self.end is not None:
            return None
        script = asyncio.create_task(self._scripted(self._request.runs))
        if not workflow.patched(_BESIDE):
            await script
        return script

    async def _scripted(self, runs: tuple[SessionRun, ...]) -> None:
        for place, asked in enumerate(runs):
            if self.end is not None:
                return
            try:
                self.results.append(await self.ran(asked, _name_of(place, asked)))
            except ApplicationError:  # the session ended while this run waited, or has no such step
                self.ask(SessionEnd.FAILED_STEP)
        self.ask(SessionEnd.DONE)

    async def _made_earlier(self, place: int, asked: SessionRun) -> ToolResult:
        """The recorded result of a call made by an earlier run of the workflow."""
        call_id, step = sessions.call_id_in(self.view.session_id, _name_of(place, asked)), self.require_step(asked)
        lost = Finished(error=ToolError(type=ErrorType.EXECUTION_ERROR, message="Its result was not recorded."))
        try:
            call = sessions.call_in(self._request, step, self.view.launched, asked.params, asked.timeout_s)
        except NoSuchFieldError as error:
            return self._unbound(call_id, step, error)
        return await self._called(call, call_id, instead=lost)

    async def ran(self, asked: SessionRun, name: str, *, is_new: bool = False) -> ToolResult:
        """Make a call of the session, once for each name; `is_new`: the name is new. Raises ApplicationError if it takes no runs."""
        if self._request.group.parallel:
            return await self._made(asked, name, is_new=is_new)
        async with self._order:
            return await self._made(asked, name, is_new=is_new)

    async def _made(self, asked: SessionRun, name: str, *, is_new: bool) -> ToolResult:
        self.require_open()
        request, step = self._request, self.require_step(asked)
        call_id = sessions.call_id_in(self.view.session_id, name)
        try:
            call = sessions.call_in(request, step, self.view.launched, asked.params, asked.timeout_s)
        except NoSuchFieldError as error:
            return self._unbound(call_id, step, error)
        unbegun = failed(call_id, step.tool_id, CANCELLED_BEFORE, workflow.now())
        key = call_id, "" if is_new else fingerprint(call)
        if (same := self._running.get(key)) is not None:
            return await ended(same, unbegun)
        task = asyncio.create_task(self._called(call, call_id, is_new=is_new))
        self._running[key] = task
        self._changes += 1
        try:
            result = await ended(task, unbegun)
        finally:
            del self._running[key]
            self._runs, self._changes = self._runs + 1, self._changes + 1
            self._note_use()
        if (end := sessions.over_by(request.group, result)) is not None:
            self.ask(end)
        return result

    def _unbound(self, call_id: str, step: GroupStep, error: NoSuchFieldError) -> ToolResult:
        wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message=str(error), details={"sent": False})
        return failed(call_id, step.tool_id, wrong, workflow.now())

    async def _stopped(self) -> None:
        while True:
            attempts = self.view.stop_attempts
            asker = self._asker
            try:
                result = await self._stop_call(asker)
            except NoSuchFieldError as error:
                wrong = ToolError(type=ErrorType.EXECUTION_ERROR, message=str(error))
                await self._fail(SessionEnd.LAUNCH_FAILED, wrong, alert=f"It cannot be stopped. {error}")
                return
            if asker is not None:
                self._stops.remove(asker)
                await tell(asker)
            if sessions.is_gone(result) or await is_unlisted(self._request, self.view):
                break
            told = result.error.message if result.error else ""
            await self._note(
                stop_attempts=attempts + 1,
                error=result.error,
                alert=f"The stop was not confirmed: {told}" if sessions.is_alert(attempts + 1) else "",
            )
            if workflow.info().is_continue_as_new_suggested():
                return
            await self._pause(sessions.pause_of(attempts))
        self._confirmed = Finished(output=result.result, is_reference=result.is_reference, error=result.error)
        await self._answer(*self._stops)
        await self._note(state=SessionState.STOPPED, ended_at=workflow.now(), error=None)

    async def _pause(self, pause: timedelta) -> None:
        """Wait before the stop is tried again; shorter if a stop is asked for."""
        try:
            await workflow.wait_condition(lambda: self._asker is not None, timeout=pause, timeout_summary="stop again")
        except TimeoutError:
            return

    async def _answer(self, *stops: AdoptedCall) -> None:
        """Answer calls of the stop that came too late: nothing is stopped twice."""
        for asked in stops if self._confirmed is not None else ():
            if asked.call_id not in self._answered or not workflow.patched(_ANSWERED_ONCE):
                await adopted(asked, self._mark, instead=self._confirmed)
                self._answered.add(asked.call_id)

    @property
    def _asker(self) -> AdoptedCall | None:
        return first_stop(self._request.group, self.view.launched, self._stops)

    async def _stop_call(self, asker: AdoptedCall | None) -> ToolResult:
        """Make the stop, as an outside call or the session's own. Raises NoSuchFieldError."""
        request, view = self._request, self.view
        if asker is not None:
            return await adopted(asker, self._mark, prefer=view.host, version=view.versions.get(asker.call.tool_id), is_stop=True)
        call = sessions.call_in(request, the_step(request.group, GroupRole.STOP), view.launched, {})
        return await self._called(call, sessions.call_id_in(request.session_id, f"stop {view.stop_attempts}"), is_stop=True)

    async def _fail(self, end: SessionEnd, error: ToolError, *, alert: str = "") -> None:
        unlaunched = {"launched_at": None} if self.view.state is SessionState.LAUNCHING else {}
        if self._request.adopts is not None and unlaunched:
            await self._launch_made(self._request.adopts.call_id, Finished(error=error))
            await tell(self._request.adopts)
        await self._note(state=SessionState.FAILED, end=end, error=error, ended_at=workflow.now(), alert=alert, **unlaunched)


def _may_have_launched(result: ToolResult) -> bool:
    may = sessions.may_have_launched(result)
    return may and (sessions.may_have_launched(result, by_outcome=False) or workflow.patched(_BY_OUTCOME))


def _name_of(place: int, asked: SessionRun) -> str:
    return sessions.run_named(asked.key) if asked.key is not None else f"place {place}"
