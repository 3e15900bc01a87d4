"""The exchange of a call with its tool: files in, the request, and the output stored."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from engine.calling.attempt import Attempt
from engine.calling.dialogues import Dialogues
from engine.calling.intake import Intake
from engine.calling.turn import Interrupted, Turn
from engine.calls.call_folders import CallFolders
from engine.calls.endings import Refused
from engine.calls.file_parameters import CallFolder, FileParameters, FileRefused
from engine.calls.large_results import FittedOutput, LargeResults
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Aftermath, Reply, Supervisor
from engine.runtimes.runtime import NO_FOLDER, ToolRequest
from engine.runtimes.secrecy import find_secrets
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.failures import StoreFullError, StoreUnavailableError
from toolagent.validation.checkers import CheckersBusyError
from toolagent_service.calls.shared_processes import place_of_calls
from toolagent_service.calls.ways import names_files
from toolagent_service.contracts.steps import CallPlan, Finished

Send = Callable[[Dispatch], Awaitable[Reply]]
"""A method of the supervisor that sends a request."""

STORE_PAUSES_S = (0.2, 1.0, 3.0)
"""Pauses between attempts to store the output of a tool, which cannot be had again."""


async def ask(send: Send, files: FileParameters | None, dispatch: Dispatch, folder: CallFolder | None) -> Reply:
    """Sends the request, with the files in its parameters. Raises FileRefused, and what `send` raises."""
    if files is None or folder is None:
        return await send(dispatch)
    params = await files.resolve(dispatch.entry.manifest.input_schema, dispatch.request.params, folder)
    return await send(replace(dispatch, request=replace(dispatch.request, params=params)))


def folder_for(manifest: ToolManifest, make: Callable[[], CallFolder]) -> AbstractAsyncContextManager[CallFolder | None]:
    """The folder of a call, if the schemas of the tool name files."""
    return make() if names_files(manifest) else nullcontext()


def outputs_of(folder: CallFolder | None) -> Path:
    """The folder for output files."""
    return folder.outputs if folder is not None else NO_FOLDER


class Exchange:
    """`slot_wait_s` is how long a call waits for a slot of its tool, before another attempt is made."""

    def __init__(
        self,
        supervisor: Supervisor,
        files: FileParameters,
        results: LargeResults,
        folders: CallFolders,
        intake: Intake,
        dialogues: Dialogues,
        *,
        slot_wait_s: float = 2.0,
    ) -> None:
        self._supervisor, self._files, self._results, self._intake = supervisor, files, results, intake
        self._folders, self._dialogues, self._slot_wait_s = folders, dialogues, slot_wait_s
        self._looked_after: set[asyncio.Task[Aftermath]] = set()

    async def make(self, send: Send, attempt: Attempt, turn: Turn) -> Finished:
        """The end of the call. Raises Interrupted, and what the attempt raises."""
        entry, folder, outcome = attempt.entry, None, None
        with self._intake.held(entry.manifest):
            folder_of = partial(self._folder, attempt.plan.call_id, entry)
            try:
                async with folder_for(entry.manifest, folder_of) as folder:
                    outcome = await self._made(send, attempt, folder, turn)
            except asyncio.CancelledError:
                # A cancel during the removal of the folder is too late: the answer stands.
                if outcome is None:
                    raise
        if folder is None or folder.left is None:
            return outcome
        return outcome.model_copy(update={"left_behind": f"The tool left files that cannot be removed: {folder.left.reason}."})

    def _folder(self, call_id: str, entry: ToolEntry) -> CallFolder:
        return self._folders.of(call_id, entry.manifest, place_of_calls(entry))

    async def _made(self, send: Send, attempt: Attempt, folder: CallFolder | None, turn: Turn) -> Finished:
        try:
            return await self._ended(send, attempt, folder, turn)
        except asyncio.CancelledError:
            if not turn.is_call_cancelled:
                raise Interrupted from None
            return attempt.cancelled(await self._supervisor.settle_cancelled(attempt.entry) if attempt.was_sent else None)

    async def _ended(self, send: Send, attempt: Attempt, folder: CallFolder | None, turn: Turn) -> Finished:
        entry = attempt.entry
        try:
            return await self._answered(send, attempt, folder, turn)
        except FileRefused as refusal:
            return attempt.file_refused(refusal, await find_secrets(entry.manifest.input_schema, attempt.plan.params))
        except Refused as refusal:
            return attempt.refused(refusal)
        except RuntimeFailure as failure:
            # It is recorded, and told to the model of a repair.
            await failure.hide_secrets(entry.manifest.input_schema, attempt.plan.params)
            if failure.error_type is ErrorType.TIMEOUT:
                self._look_after(entry)
            return attempt.after_failure(failure)

    async def _answered(self, send: Send, attempt: Attempt, folder: CallFolder | None, turn: Turn) -> Finished:
        plan, entry, left_s = attempt.plan, attempt.entry, attempt.left_s
        async with self._dialogues.of(plan.call_id, plan.listens, left_s) as dialogue:
            place = outputs_of(folder)
            request = ToolRequest(plan.call_id, plan.params, left_s, place, turn.say, entry.manifest, plan.caller, dialogue)
            reply = await ask(send, self._files, Dispatch(entry, request, attempt, self._slot_wait_s, plan.start_timeout_s), folder)
        fitted = await self._kept(plan, entry.manifest, reply.output, folder)
        answered = attempt.answered(fitted, reply.duration_s, reply.active_source)
        # Only for callers that listen; others read the output.
        return answered.model_copy(update={"shown": dialogue.shown}) if plan.listens is not None else answered

    async def _kept(self, plan: CallPlan, manifest: ToolManifest, output: JsonValue, folder: CallFolder | None) -> FittedOutput:
        """The output, checked, with its files in the content store. Retries for a while, because the tool has run."""
        for pause_s in (*STORE_PAUSES_S, None):
            try:
                taken = await self._files.take_in(manifest.output_schema, output, folder) if folder is not None else output
                return await self._results.fit(plan.call_id, manifest, taken)
            except (StoreUnavailableError, CheckersBusyError) as error:
                if pause_s is None:
                    raise _not_kept(error, plan) from error
                await asyncio.sleep(pause_s)
        raise AssertionError("The last attempt returns or raises.")

    def _look_after(self, entry: ToolEntry) -> None:
        """Ends a hanging tool in the background, unless it comes to rest: it would time out every later call."""
        task = asyncio.create_task(self._supervisor.settle_cancelled(entry), name=f"look after {entry.manifest.tool_id}")
        self._looked_after.add(task)
        task.add_done_callback(self._looked_after.discard)


def _not_kept(error: StoreUnavailableError | CheckersBusyError, plan: CallPlan) -> Refused:
    """`unavailable` invites another call, which only a repeatable tool may get."""
    store = "store_full" if isinstance(error, StoreFullError) else "store_unavailable"
    cause = "checkers_busy" if isinstance(error, CheckersBusyError) else store
    kind = ErrorType.UNAVAILABLE if plan.repeatable else ErrorType.EXECUTION_ERROR
    return Refused(kind, f"The tool ran, but what it made could not be kept: {error}", {"cause": cause, "outcome": "executed"})
