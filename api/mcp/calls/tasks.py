"""Calls as tasks: the extension of revision 2026-07-28, and tasks of 2025-11-25.

A task has the id of its call, and its record as state.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import cast

from mcp import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CancelTaskRequestParams,
    GetTaskRequestParams,
    PaginatedRequestParams,
    RequestParams,
)
from pydantic import JsonValue
from starlette.requests import Request

from api.errors import status_of
from api.json_object import JsonObject
from api.mcp.calls.answers import Answers
from api.mcp.calls.following import Following, request_of
from api.mcp.calls.underway import LostCallError, Underway
from api.mcp.catalog import PAGE, ToolCatalog, no_cursor
from api.mcp.clients import TASKS, has_tasks, is_modern
from api.mcp.kept_sessions import ClientSessions
from api.mcp.visit import Ctx, visit_of
from api.ports import CallRecords, Calls
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.identifiers import CALL_ID_PATTERN
from toolagent.contracts.records import CallRecord
from toolagent.contracts.tasks import TaskView
from toolagent_service.contracts.mcp import McpSession

_MODERN: JsonObject = {"ttlMs": None, "pollIntervalMs": 1000}
_OLD: JsonObject = {"ttl": None, "pollInterval": 1000}
"""How long a task is kept, and how often a client should ask, in each revision."""

_MOST_LISTED = 500
"""The most tasks of a session that are listed: the latest ones."""

_RELATED = "io.modelcontextprotocol/related-task"


class UpdateTaskParams(RequestParams):
    """Answers to questions of a task, by their keys."""

    task_id: str
    input_responses: JsonObject


@dataclass(frozen=True, slots=True)
class _Known:
    """A call as its record and Temporal have it."""

    record: CallRecord | None
    view: TaskView | None = None

    @property
    def result(self) -> ToolResult | None:
        """The result in the record; while the call is not settled, that of its workflow."""
        return self.record.result if self.record and self.record.result else self.view.result if self.view else None

    @property
    def is_over(self) -> bool:
        return self.record is not None and self.record.result is not None

    @property
    def begun_at(self) -> datetime:
        return self.record.created_at if self.record else (self.view.started_at if self.view else None) or datetime.now(UTC)


class Tasks:
    def __init__(
        self,
        client: Calls,
        records: CallRecords,
        catalog: ToolCatalog,
        underway: Underway,
        following: Following,
        answers: Answers,
        sessions: ClientSessions,
    ) -> None:
        self._client, self._records, self._catalog, self._sessions = client, records, catalog, sessions
        self._underway, self._following, self._answers = underway, following, answers

    async def begun(self, call: ToolCall, call_id: str, session: McpSession | None) -> JsonObject:
        """Start a call that is a task from its beginning. Returns the task. Raises MCPError if the call is refused."""
        try:
            await self._client.start(call, call_id)
        except (CallRefusedError, AnswerPendingError) as error:
            raise _not_begun(error.result) from error
        if session is not None:
            await self._sessions.change(session.session_id, lambda now: _with_task(now, call_id))
        return {**_working(call_id, datetime.now(UTC)), **_OLD}

    async def created(self, call_id: str) -> JsonObject | None:
        """The task that a call has become; None while the call could not be found after an end of this process."""
        record, view = await self._records.get(call_id), None
        if record is None:
            with suppress(AnswerPendingError):
                view = await self._client.task(call_id)
        if record is None and view is None:
            return None
        return {"resultType": "task", **_working(call_id, _Known(record, view).begun_at), **_MODERN}

    async def list(self, ctx: Ctx, params: PaginatedRequestParams | None) -> JsonObject:
        """`tasks/list` of 2025-11-25: the tasks of the session, the earliest first. Raises MCPError for an invalid cursor."""
        _require_old(ctx)
        session, cursor = visit_of(ctx).session, params.cursor if params else None
        ids: tuple[str, ...] = session.tasks if session is not None else ()
        if cursor is not None and cursor not in ids:
            raise no_cursor()
        start = ids.index(cursor) + 1 if cursor is not None else 0
        shown = ids[start : start + PAGE]
        found = await asyncio.gather(*(self._listed(ctx, task_id) for task_id in shown))
        listed: JsonObject = {"tasks": [task for task in found if task is not None]}
        return {**listed, "nextCursor": ids[start + PAGE - 1]} if start + PAGE < len(ids) else listed

    async def _listed(self, ctx: Ctx, task_id: str) -> JsonObject | None:
        """None for a task without a record and a workflow. Raises MCPError while Temporal is away."""
        try:
            return await self._shown(ctx, task_id, await self._found(task_id))
        except MCPError as error:
            if error.code == INVALID_PARAMS:
                return None
            raise

    async def get(self, ctx: Ctx, params: GetTaskRequestParams) -> JsonObject:
        _require(ctx, params.task_id)
        known = await self._found(params.task_id)
        shown = await self._shown(ctx, params.task_id, known)
        return {"resultType": "complete", **shown, **await self._end(known)} if is_modern(ctx) else shown

    async def update(self, ctx: Ctx, params: UpdateTaskParams) -> JsonObject:
        _require(ctx, params.task_id)
        await self._found(params.task_id)
        await self._following.answer(params.task_id, params.input_responses)
        return {"resultType": "complete"}

    async def cancel(self, ctx: Ctx, params: CancelTaskRequestParams) -> JsonObject:
        _require(ctx, params.task_id)
        known = await self._found(params.task_id)
        if not known.is_over:
            await self._cancel(params.task_id)
        if is_modern(ctx):
            return {"resultType": "complete"}
        if known.is_over:
            raise MCPError(INVALID_PARAMS, f"taskId: the task {params.task_id} has ended.")
        return {**await self._shown(ctx, params.task_id, known), "status": "cancelled"}

    async def _cancel(self, task_id: str) -> None:
        """Raises MCPError if the task may go on."""
        try:
            await self._client.cancel(task_id)
        except AnswerPendingError as error:
            raise MCPError(INTERNAL_ERROR, "The cancellation did not reach Temporal. Ask again.") from error

    async def result(self, ctx: Ctx, params: GetTaskRequestParams) -> JsonObject:
        """`tasks/result` of 2025-11-25: waits for the end of the task."""
        _require_old(ctx)
        known = await self._found(params.task_id)
        try:
            with self._underway.end(params.task_id) as end:
                await asyncio.wait((end,))
                result = end.result()
        except LostCallError as error:
            raise _unknown(params.task_id) from error
        answer = await self._answer(known, result)
        meta = answer.get("_meta")
        return {**answer, "_meta": {**(meta if isinstance(meta, dict) else {}), _RELATED: {"taskId": params.task_id}}}

    async def _answer(self, known: _Known, result: ToolResult) -> JsonObject:
        return await self._answers.of(result, await self._catalog.find(known.record.tool_id if known.record else result.tool_id))

    async def _found(self, task_id: str) -> _Known:
        """Raises MCPError for a call that neither the records nor Temporal know."""
        if not re.fullmatch(CALL_ID_PATTERN, task_id):
            raise _unknown(task_id)
        record, view = await self._records.get(task_id), None
        if record is not None and record.result is not None:
            return _Known(record)
        try:
            view = await self._client.task(task_id)
        except AnswerPendingError as error:
            if record is None:
                told = f"The state of the task {task_id} is not known now: Temporal does not answer. Ask again."
                raise MCPError(INTERNAL_ERROR, told) from error
        if record is None and view is None:
            # It may have ended in between: then it has a record, and Temporal does not know it any more.
            record = await self._records.get(task_id)
        if record is None and view is None:
            raise _unknown(task_id)
        return _Known(record, view)

    async def _shown(self, ctx: Ctx, task_id: str, known: _Known) -> JsonObject:
        result, begun_at = known.result, known.begun_at
        updated_at = (known.record.settled_at if known.record else None) or begun_at
        shown: JsonObject = {"taskId": task_id, "status": _status(result), **(_MODERN if is_modern(ctx) else _OLD)}
        # The older revision has no field for questions.
        if result is None and is_modern(ctx) and (questions := await self._following.open_questions(task_id)):
            shown["status"] = "input_required"
            shown["inputRequests"] = {key: request_of(question) for key, question in questions.items()}
        if result is not None and result.error is not None:
            shown["statusMessage"] = result.error.message
        return {**shown, "createdAt": _time(begun_at), "lastUpdatedAt": _time(updated_at)}

    async def _end(self, known: _Known) -> JsonObject:
        result = known.result
        match _status(result):
            case "completed" if result is not None:
                return {"result": {"resultType": "complete", **await self._answer(known, result)}}
            case "failed" if result is not None and result.error is not None:
                error = result.error
                code = error.details.get("code") if isinstance(error.details, dict) else None
                told: JsonObject = {"code": code if isinstance(code, int) else INTERNAL_ERROR, "message": error.message}
                return {"error": {**told, "data": error.model_dump(mode="json")}}
            case _:
                return {}


def _working(task_id: str, begun_at: datetime) -> JsonObject:
    return {"taskId": task_id, "status": "working", "createdAt": _time(begun_at), "lastUpdatedAt": _time(begun_at)}


def _with_task(session: McpSession, task_id: str) -> McpSession:
    if task_id in session.tasks:
        return session
    return session.model_copy(update={"tasks": (*session.tasks, task_id)[-_MOST_LISTED:]})


def _not_begun(result: ToolResult) -> MCPError:
    """The error of a refused call, which has no task to show it."""
    status = status_of(result)
    is_callers = status < HTTPStatus.INTERNAL_SERVER_ERROR and status is not HTTPStatus.TOO_MANY_REQUESTS
    message, data = (result.error.message, result.error.model_dump(mode="json")) if result.error else (result.status, None)
    return MCPError(INVALID_PARAMS if is_callers else INTERNAL_ERROR, message, data)


def _status(result: ToolResult | None) -> str:
    """The status of a task. An error reported by the tool itself is a result; only other errors make the task fail."""
    if result is None:
        return "working"
    if result.error is None:
        return "completed"
    if result.error.type is ErrorType.CANCELLED:
        return "cancelled"
    details: Mapping[str, JsonValue] = result.error.details if isinstance(result.error.details, dict) else {}
    is_protocols = details.keys() & {"code", "outcome"} or result.error.type is not ErrorType.EXECUTION_ERROR
    return "failed" if is_protocols else "completed"


def _require(ctx: Ctx, task_id: str) -> None:
    """Raises MCPError if a client of the newer revision has not declared the extension, or its header names another task."""
    named = cast("Request", ctx.request).headers.get("mcp-name", task_id) if ctx.request is not None else task_id
    if is_modern(ctx) and named != task_id:
        raise MCPError(HEADER_MISMATCH, "mcp-name: the header names another task than `taskId`.")
    if is_modern(ctx) and not has_tasks(ctx):
        raise lacking_tasks(f"{ctx.method} needs the extension {TASKS}: declare it.")


def lacking_tasks(message: str) -> MCPError:
    """The error for a client that has not declared the extension."""
    extensions: JsonObject = {"extensions": {TASKS: {}}}
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, {"requiredCapabilities": extensions})


def _require_old(ctx: Ctx) -> None:
    if is_modern(ctx):
        raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)


def _unknown(task_id: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"taskId: there is no task {task_id[:100]!r}.")


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
