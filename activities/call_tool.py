"""Making a call: the middle step.

Before a request to a tool that is not repeatable leaves, `sent_at` is committed. An attempt that finds it there does not send
(DESIGN §3, never twice).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from pydantic import JsonValue
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.attempt import MAX_TRIES, AlreadySent, Attempt
from activities.heartbeats import Pulse, beating
from engine.calls.call_folders import CallFolders
from engine.calls.file_parameters import CallFolder, FileParameters, FileRefused
from engine.calls.large_results import FittedOutput, LargeResults, OutputRefused
from engine.registry.registry import ToolRegistry
from engine.runtimes.failures import CallFailed, NoSlot, RuntimeFailure
from engine.runtimes.runtime import Progress, ToolRequest
from engine.runtimes.supervisor import Aftermath, NotRunningHere, Supervisor
from engine.store.calls import CallTable
from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import JsonSchema
from toolagent.contracts.steps import CallOutcome, CallPlan, CallRequest, Finished, NotRunning
from toolagent.core.failures import StoreFullError, StoreUnavailableError
from toolagent.core.shared_processes import place_of_calls
from toolagent.validation.checkers import CheckersBusyError

__all__ = ["CallTool"]

EXPECTED = ApplicationErrorCategory.BENIGN
"""Temporal logs and counts these as what they are: part of the plan."""

SLOT_PAUSE = timedelta(seconds=1)
"""A call that waits for a slot of its tool gives the slot of its bucket to others in between."""

STORE_PAUSES_S = (0.2, 1.0, 3.0)
"""Between attempts to keep what a tool has made, which cannot be had again."""


class CallTool:
    """Joins the supervisor, which runs tools, with the record that something was sent."""

    def __init__(
        self,
        registry: ToolRegistry,
        supervisor: Supervisor,
        calls: CallTable,
        files: FileParameters,
        results: LargeResults,
        *,
        folders: CallFolders,
        host: str,
        slot_wait_s: float = 2.0,
    ) -> None:
        self._registry = registry
        self._supervisor = supervisor
        self._calls = calls
        self._files = files
        self._results = results
        self._folders = folders
        self._host = host
        self._slot_wait_s = slot_wait_s  # for one of the tool's own slots; then Temporal makes the next attempt
        self._looked_after: set[asyncio.Task[Aftermath]] = set()

    @activity.defn(name=names.CALL)
    async def call_tool(self, request: CallRequest) -> CallOutcome:
        """What the tool or the caller got wrong is returned; what may be tried again is raised."""
        plan = request.plan
        async with beating() as pulse, _waiting_for_the_store(pulse):
            entry = await self._registry.entry(plan.tool_id, plan.version)
            if entry is None:
                message = f"Tool {plan.tool_id!r} was removed before the call was made."
                return Finished(error=ToolError(type=ErrorType.TOOL_NOT_FOUND, message=message, details={"sent": False}))
            return await self._made(request, entry, pulse)

    async def make(self, request: CallRequest, entry: ToolEntry) -> CallOutcome:
        """As `call_tool`, for whoever has just looked the tool up."""
        async with beating() as pulse:
            return await self._made(request, entry, pulse)

    async def _made(self, request: CallRequest, entry: ToolEntry, pulse: Pulse) -> CallOutcome:
        """However it ends, it ends: lost attempts, those that fail for a reason of ours, and the tool's time are all bounded."""
        info, plan = activity.info(), request.plan
        attempt = Attempt(plan, entry, self._calls, info.workflow_id or "", info.workflow_run_id or "", self._host, pulse)
        if pulse.tries >= MAX_TRIES:
            return attempt.given_up()
        if attempt.left_s <= 0:
            return attempt.out_of_time()
        folder = self._folders.of(plan.call_id, entry.manifest, place_of_calls(entry))
        try:
            return _with_leftovers(await self._attempted(attempt, request, entry, pulse, folder), folder)
        except (ApplicationError, StoreUnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, a call must not be tried without end because of it
            return _after_fault(attempt, error, pulse)

    async def _attempted(self, attempt: Attempt, request: CallRequest, entry: ToolEntry, pulse: Pulse, folder: CallFolder) -> CallOutcome:
        plan = request.plan
        async with folder:
            try:
                return await self._exchange(attempt, entry, plan, folder, pulse.say, only_if_running=request.only_if_running)
            except NotRunningHere:
                return NotRunning()
            except AlreadySent:
                return await attempt.unknown()
            except FileRefused as refusal:
                return attempt.file_refused(refusal)
            except OutputRefused as refusal:
                return attempt.refused(refusal.error, refusal.issues)
            except RuntimeFailure as failure:
                return self._after_failure(attempt, entry, plan, failure, pulse)
            except asyncio.CancelledError:
                if not _is_asked_for():
                    _note_the_end(pulse)
                    raise ApplicationError("The attempt was ended from outside.", type=names.ATTEMPT_ENDED, category=EXPECTED) from None
                return attempt.cancelled(await self._supervisor.settle_cancelled(entry) if attempt.was_sent else None)

    def _after_failure(self, attempt: Attempt, entry: ToolEntry, plan: CallPlan, failure: RuntimeFailure, pulse: Pulse) -> CallOutcome:
        """A lost connection to a repeatable tool is tried again, by Temporal; everything else is the answer."""
        if isinstance(failure, NoSlot):
            pulse.only_waited()
            raise ApplicationError(failure.message, type=names.NO_SLOT, category=EXPECTED, next_retry_delay=SLOT_PAUSE)
        if failure.error_type is ErrorType.TIMEOUT:
            self._look_after(entry)
            return attempt.failed(failure)
        lost = isinstance(failure, CallFailed) and failure.outcome == "unknown"
        if not lost or not plan.repeatable:
            return attempt.failed(failure)
        if activity.info().is_local:
            return NotRunning()
        if attempt.may_be_repeated:
            pulse.beat()  # the next attempt must know what the tool has had of its time
            raise ApplicationError(failure.message, type=names.TOOL_CONNECTION_LOST, category=EXPECTED)
        return attempt.failed(failure)

    def _look_after(self, entry: ToolEntry) -> None:
        """A tool that hangs would time out every later call: end it unless it comes to rest. Nobody has to wait for that."""
        task = asyncio.create_task(self._supervisor.settle_cancelled(entry), name=f"look after {entry.manifest.tool_id}")
        self._looked_after.add(task)
        task.add_done_callback(self._looked_after.discard)

    async def _exchange(
        self, attempt: Attempt, entry: ToolEntry, plan: CallPlan, folder: CallFolder, say: Progress, *, only_if_running: bool
    ) -> Finished:
        params = await self._files.resolve(entry.manifest.input_schema, plan.params, folder)
        reply = await self._supervisor.call(
            entry,
            ToolRequest(plan.call_id, params, attempt.left_s, folder.outputs, progress=say, manifest=entry.manifest, caller=plan.caller),
            before_send=attempt.before_send,
            after_not_sent=attempt.after_not_sent,
            progress=say,
            only_if_running=only_if_running,
            slot_timeout_s=self._slot_wait_s,
            start_timeout_s=plan.start_timeout_s,
        )
        fitted = await self._kept(plan, entry.manifest.output_schema, reply.output, folder)
        return attempt.answered(fitted, reply.duration_s, reply.active_source)

    async def _kept(self, plan: CallPlan, schema: JsonSchema, output: JsonValue, folder: CallFolder) -> FittedOutput:
        """The output with its files, or itself, in the content store, and checked. It is worth some patience: the tool has run."""
        for pause_s in (*STORE_PAUSES_S, None):
            try:
                taken = await self._files.take_in(schema, output, folder)
                return await self._results.fit(plan.call_id, schema, taken)
            except (StoreUnavailableError, CheckersBusyError) as error:
                if pause_s is None:
                    raise OutputRefused(_not_kept(error, plan)) from error
                await asyncio.sleep(pause_s)
        raise AssertionError("The last attempt returns or raises.")


@asynccontextmanager
async def _waiting_for_the_store(pulse: Pulse) -> AsyncGenerator[None]:
    """It is tried until the database is back: that is not the call's fault."""
    try:
        yield
    except StoreUnavailableError:
        pulse.only_waited()
        raise


def _after_fault(attempt: Attempt, error: Exception, pulse: Pulse) -> CallOutcome:
    """Of ours, or of a library. Raises it while another attempt may help."""
    if activity.info().is_local:
        activity.logger.warning("A fast call failed for a reason of ours; it is made as an ordinary one", exc_info=error)
        return NotRunning()
    if pulse.tries + 1 < MAX_TRIES:
        pulse.beat()  # as after a lost connection
        raise error
    activity.logger.error("A call failed for a reason of ours, for the last time", exc_info=error)
    return attempt.faulted(error)


def _note_the_end(pulse: Pulse) -> None:
    """Somebody stopped the worker or the attempt: no fault of the call. A time-out, or a heartbeat that could not be sent, may be one."""
    details = activity.cancellation_details()
    if details is not None and (details.worker_shutdown or details.paused or details.reset):
        pulse.only_waited()


def _with_leftovers(outcome: CallOutcome, folder: CallFolder) -> CallOutcome:
    if folder.left is None or not isinstance(outcome, Finished):
        return outcome
    return outcome.model_copy(update={"left_behind": f"The tool left files that cannot be removed: {folder.left.reason}."})


def _is_asked_for() -> bool:
    """Whether somebody cancelled the call. A worker that stops, a pause, a reset or a time-out end this attempt, not the call."""
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def _not_kept(error: StoreUnavailableError | CheckersBusyError, plan: CallPlan) -> ToolError:
    """`unavailable` invites to call again, which only a repeatable tool may be."""
    store = "store_full" if isinstance(error, StoreFullError) else "store_unavailable"
    cause = "checkers_busy" if isinstance(error, CheckersBusyError) else store
    kind = ErrorType.UNAVAILABLE if plan.repeatable else ErrorType.EXECUTION_ERROR
    return ToolError(
        type=kind, message=f"The tool ran, but what it made could not be kept: {error}", details={"cause": cause, "outcome": "executed"}
    )
