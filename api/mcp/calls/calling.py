"""`tools/call`: makes calls, and answers as each revision of MCP requires."""

import asyncio
from collections.abc import Callable
from typing import cast

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    LoggingMessageNotification,
    ProgressNotification,
)
from pydantic import ValidationError

from api.calls import require_size
from api.errors import Refusal
from api.json_object import JsonObject
from api.mcp.calls.answers import Answers
from api.mcp.calls.following import Asked, Followed, Following, Tell, request_of
from api.mcp.calls.request_state import RequestStates
from api.mcp.calls.tasks import Tasks, lacking_tasks
from api.mcp.calls.underway import LostCallError, Underway, outcome_unknown
from api.mcp.catalog import ToolCatalog
from api.mcp.clients import IDEMPOTENCY_KEY, TASKS, caller_of, has_tasks, is_modern, listener_of, own_key, responses_of, token_of
from api.mcp.visit import Ctx, Visit, visit_of
from api.ports import Limits
from toolagent.client.call_ids import new_call_id
from toolagent.client.failures import CallRefusedError
from toolagent.contracts.calls import ToolCall, ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import TaskSupport
from toolagent.core.calls.idempotency import is_generated, keyed_call_id

_LOOK_AGAIN_S = 0.5
_MOMENT_S = 0.5
"""The time in which a call that must become a task may ask its first questions."""


class Calling:
    """After `task_after_s`, a call becomes a task if its client supports tasks. `is_stopping`: the service ends."""

    def __init__(
        self,
        catalog: ToolCatalog,
        underway: Underway,
        following: Following,
        answers: Answers,
        tasks: Tasks,
        states: RequestStates,
        limits: Limits,
        *,
        task_after_s: float,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._catalog, self._underway, self._following = catalog, underway, following
        self._answers, self._tasks, self._states, self._limits = answers, tasks, states, limits
        self._task_after_s, self._is_stopping = task_after_s, is_stopping

    async def call(self, ctx: Ctx, params: CallToolRequestParams) -> JsonObject:
        """The answer to `tools/call`. Raises MCPError for an unknown tool and a malformed call."""
        return await self.make(ctx, await self.entry(visit_of(ctx), params.name), params)

    async def make(self, ctx: Ctx, entry: ToolEntry, params: CallToolRequestParams) -> JsonObject:
        """Call this tool with the arguments of the request. Raises MCPError."""
        visit, given = visit_of(ctx), responses_of(params)
        at_most_s, position = self._at_most_s(ctx, entry), 0
        if params.request_state is not None:
            call_id, position = self._states.opened(params.request_state, entry.manifest.tool_id)
            await self._following.answer(call_id, given)
            given = {}
        else:
            call, call_id = self._taken(ctx, visit, entry, params)
            try:
                self._underway.begin(call, call_id, is_new=call.idempotency_key is None)
            except CallRefusedError as error:
                return await self._answers.of(error.result, entry)
        visit.call_id = call_id
        hears = listener_of(ctx, visit, entry) is not None
        is_task = at_most_s is not None and entry.manifest.task_support is TaskSupport.REQUIRED
        followed = Followed(call_id, _teller(ctx, visit), visit.ask, token_of(ctx), hears, position, given, at_most_s)
        followed.is_continued = params.request_state is not None
        # A call with a key goes on: the same request comes again after a break, perhaps from another client.
        is_kept = is_modern(ctx) and not is_generated(call_id)
        return await self._answered(followed, entry, is_task=is_task, is_kept=is_kept)

    async def begin_task(self, ctx: Ctx, entry: ToolEntry, params: CallToolRequestParams) -> JsonObject:
        """The call as a task of revision 2025-11-25, as the client asked. Raises MCPError."""
        visit = visit_of(ctx)
        if entry.manifest.task_support is TaskSupport.FORBIDDEN:
            raise MCPError(METHOD_NOT_FOUND, f"task: {params.name} cannot be a task. Call it without `task`.")
        call, call_id = self._taken(ctx, visit, entry, params)
        # Such a task has no stream, so its questions would never be answered.
        return {"task": await self._tasks.begun(call.model_copy(update={"listens": None}), call_id, visit.session)}

    async def _answered(self, followed: Followed, entry: ToolEntry, *, is_task: bool, is_kept: bool) -> JsonObject:
        """`is_task`: the answer is a task, or questions before it is one. `is_kept`: the call goes on without its client."""
        takes_task = followed.at_most_s is not None
        try:
            while (answer := await self._step(followed, entry, takes_task=takes_task, is_task=is_task)) is None:
                followed.at_most_s = _LOOK_AGAIN_S
        except asyncio.CancelledError:
            if not is_kept and not self._is_stopping():
                self._underway.cancel_soon(followed.call_id)
            raise
        except LostCallError as error:
            raise MCPError(INVALID_PARAMS, outcome_unknown(followed.call_id)) from error
        return answer

    async def _step(self, followed: Followed, entry: ToolEntry, *, takes_task: bool, is_task: bool) -> JsonObject | None:
        """The answer; None if the call should become a task, and cannot be found yet after an end of this process."""
        call_id = followed.call_id
        match await self._following.follow(followed):
            case Asked() if takes_task and not is_task and (created := await self._tasks.created(call_id)) is not None:
                return created  # the client gets the questions from the task
            case Asked(questions):
                asked: JsonObject = {key: request_of(question) for key, question in questions.items()}
                state = self._states.sealed(call_id, entry.manifest.tool_id, followed.position)
                return {"resultType": "input_required", "inputRequests": asked, "requestState": state}
            case None:
                return await self._tasks.created(call_id)
            case _ if is_task and (created := await self._tasks.created(call_id)) is not None:
                return created
            case result:
                _require_capability(result)
                return await self._answers.of(result, entry)

    def _at_most_s(self, ctx: Ctx, entry: ToolEntry) -> float | None:
        """After how long the call becomes a task; None: never. Raises MCPError if it must be one and the client supports none."""
        support = entry.manifest.task_support or TaskSupport.OPTIONAL
        if not is_modern(ctx) or not has_tasks(ctx):
            if support is TaskSupport.REQUIRED:
                raise lacking_tasks(f"{entry.manifest.tool_id} is called as a task only: declare the extension {TASKS}.")
            return None
        match support:
            case TaskSupport.FORBIDDEN:
                return None
            case TaskSupport.OPTIONAL:
                return self._task_after_s
            case TaskSupport.REQUIRED:
                return min(self._task_after_s, _MOMENT_S)

    async def entry(self, visit: Visit, name: str) -> ToolEntry:
        """A tool that the client may see. Raises MCPError for any other."""
        entry = await self._catalog.find(name)
        if entry is None or not await self._catalog.is_selected(visit.selection, entry):
            raise MCPError(INVALID_PARAMS, f"name: there is no tool {name[:128]!r}. tools/list has the names.")
        return entry

    def _taken(self, ctx: Ctx, visit: Visit, entry: ToolEntry, params: CallToolRequestParams) -> tuple[ToolCall, str]:
        caller, key = caller_of(ctx, visit), (ctx.meta or {}).get(IDEMPOTENCY_KEY)
        arguments = cast("JsonObject", params.arguments or {})
        try:
            call = ToolCall(
                tool_id=entry.manifest.tool_id,
                params=arguments,
                idempotency_key=cast("str | None", key),
                caller=caller,
                listens=listener_of(ctx, visit, entry),
            )
            if call.idempotency_key is not None:
                call = call.model_copy(update={"idempotency_key": own_key(ctx, visit, call.idempotency_key)})
            require_size("The call", call, self._limits.max_params_bytes)
        except ValidationError as error:
            raise MCPError(INVALID_PARAMS, f"_meta[{IDEMPOTENCY_KEY!r}]: a text of 1 to 255 characters is expected.") from error
        except Refusal as refusal:
            raise MCPError(INVALID_PARAMS, f"arguments: {refusal.detail}") from refusal
        return call, keyed_call_id(call) or new_call_id()


def _teller(ctx: Ctx, visit: Visit) -> Tell:
    async def tell(method: str, params: JsonObject, position: int) -> None:
        visit.position = position
        kind = ProgressNotification if method == "notifications/progress" else LoggingMessageNotification
        told = kind.model_validate({"method": method, "params": params}, by_name=False)
        await ctx.session.send_notification(told, related_request_id=ctx.request_id)

    return tell


def _require_capability(result: ToolResult) -> None:
    """Raises MCPError if the tool's server needs a capability that the client has not declared."""
    match result.error:
        case ToolError(message=message, details={"code": code} as details) if code == MISSING_REQUIRED_CLIENT_CAPABILITY:
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, details.get("data"))
        case _:
            return
