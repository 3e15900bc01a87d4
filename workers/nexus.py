"""Nexus operations for agents elsewhere: calls, batches and tasks as workflows, and queries of the registry.

A request that is delivered again has the same request id, and so the same workflow id: Temporal starts nothing twice.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from nexusrpc import HandlerError, HandlerErrorType
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from temporalio.client import Client
from temporalio.common import Priority, TypedSearchAttributes, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.nexus import TemporalNexusClient, TemporalOperationResult, TemporalStartOperationContext, temporal_operation

from api.making import require_one_request
from engine.registry.matching.matching import Matching
from engine.registry.matching.texts import Filters
from engine.registry.registry import ToolRegistry
from engine.store.tasks import TaskTable
from toolagent.client import names
from toolagent.client.child import found_by, memo_of
from toolagent.client.nexus import ToolAgentService
from toolagent.client.patience import described
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import BatchEnd, LookState, ToolBatch
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.http import BriefMatches
from toolagent.contracts.making import MakeEnd, MakeRequest
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.nexus import CreateToolRequest, ToolQuery, ToolSearch
from toolagent.contracts.task_specs import RepairTool
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.batches import batch_fingerprint, batch_id_for_request, keyed_batch_id
from toolagent.core.calls.idempotency import call_id_for_request, fingerprint, keyed_call_id
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, key_conflict
from toolagent.core.catalog.briefs import in_brief
from toolagent.core.failures import TaskConflictError
from toolagent.core.suggestions import nearest
from toolagent.core.task_requests import SpecError, read_spec, request_fingerprint, request_key, subject_of, task_id_for

_ATTEMPTS = 5
"""How often a start is tried for a workflow that ends, or is started by others, at that moment."""

_IDS = 8
"""How many ids of a task are tried. An id has eight hex digits only, so another task may have it."""

_KEY_USED = "This idempotency key was used for another request. Choose a new one."

EndT = TypeVar("EndT", bound=Contract)


@dataclass(frozen=True, slots=True)
class _Run(Generic[EndT]):
    """A workflow to be started, unless it exists already."""

    workflow: str
    argument: Contract
    id: str
    end: type[EndT]
    memo: dict[str, str]
    found_by: TypedSearchAttributes
    summary: str
    priority: Priority = Priority.default


@service_handler(service=ToolAgentService)
class NexusOperations:
    def __init__(self, client: Client, registry: ToolRegistry, matching: Matching, tasks: TaskTable) -> None:
        self._client, self._calls = client, ToolAgentClient(client)
        self._registry, self._matching, self._tasks = registry, matching, tasks

    @temporal_operation
    async def run_tool(
        self, ctx: TemporalStartOperationContext, temporal: TemporalNexusClient, call: ToolCall
    ) -> TemporalOperationResult[ToolResult]:
        # Through Nexus, no client hears messages or answers questions, so the call must not wait for that.
        call = call.model_copy(update={"listens": None})
        call_id = keyed_call_id(call) or call_id_for_request(ctx.request_id)
        memo, found = memo_of(fingerprint(call), call.callback_url), found_by("call", call.tool_id, call.caller.caller_id)
        run = _Run(names.INVOKE_TOOL, call, call_id, ToolResult, memo, found, call.tool_id, Priority(priority_key=call.priority))

        async def look() -> LookState | ToolResult:
            state = (await self._calls.look(call, call_id)).state
            if state is LookState.CONFLICT:
                return key_conflict(call_id, call.tool_id, datetime.now(UTC))
            return await self._calls.result(call_id, call.tool_id) if state is LookState.ENDED else state

        return await _begun(temporal, run, look)

    @temporal_operation
    async def run_tools(
        self, ctx: TemporalStartOperationContext, temporal: TemporalNexusClient, batch: ToolBatch
    ) -> TemporalOperationResult[BatchEnd]:
        batch = batch.model_copy(update={"calls": tuple(call.model_copy(update={"listens": None}) for call in batch.calls)})
        batch_id = keyed_batch_id(batch) or batch_id_for_request(ctx.request_id)
        mark = batch_fingerprint(batch)
        found = found_by("batch", caller_id=batch.caller.caller_id)
        run = _Run(names.RUN_TOOLS, batch, batch_id, BatchEnd, memo_of(mark, batch.callback_url), found, f"{len(batch.calls)} calls")

        async def look() -> LookState | BatchEnd:
            state = await self._state_of(batch_id, mark)
            if state is LookState.CONFLICT:
                error = ToolError(type=ErrorType.REJECTED, message=_KEY_USED, details={"reason": IDEMPOTENCY_CONFLICT})
                return BatchEnd(batch_id=batch_id, error=error)
            return await self._calls.batch_end(batch_id) if state is LookState.ENDED else state

        return await _begun(temporal, run, look)

    @temporal_operation
    async def create_tool(
        self, ctx: TemporalStartOperationContext, temporal: TemporalNexusClient, request: CreateToolRequest
    ) -> TemporalOperationResult[MakeEnd]:
        for asked in _requests_of(request, ctx.request_id):
            try:
                return await self._task(temporal, asked)
            except TaskConflictError:
                if asked.key:
                    break
        return _at_once(MakeEnd(task_id="", status=TaskState.FAILED, reason=_KEY_USED))

    @sync_operation
    async def get_tool(self, ctx: StartOperationContext, query: ToolQuery) -> ToolManifest:
        del ctx
        entry = await self._registry.entry(query.tool_id)
        if entry is None:
            near = nearest(query.tool_id, await self._registry.list_ids())
            hint = f"Did you mean {', '.join(near)}?" if near else "search_tools finds what there is."
            raise HandlerError(f"There is no tool {query.tool_id!r}. {hint}", type=HandlerErrorType.NOT_FOUND)
        return entry.manifest

    @sync_operation
    async def search_tools(self, ctx: StartOperationContext, search: ToolSearch) -> BriefMatches:
        del ctx
        filters = Filters(search.category, search.backend_runtime, search.tag, search.group, search.namespace)
        entries, total = await self._matching.search(search.keyword, filters, search.limit)
        return BriefMatches(tools=tuple(in_brief(entry.manifest) for entry in entries), total=total)

    async def _task(self, temporal: TemporalNexusClient, asked: MakeRequest) -> TemporalOperationResult[MakeEnd]:
        """Raises TaskConflictError if the id belongs to another request."""
        if ended := await self._ended(asked):
            return _at_once(ended)
        spec = asked.spec
        workflow = names.REPAIR_TOOL if isinstance(spec, RepairTool) else names.CREATE_TOOL
        mark = request_fingerprint(asked)
        found, summary = found_by(spec.type, subject_of(spec), asked.caller.caller_id), f"{spec.type} {subject_of(spec)}"

        async def look() -> LookState | MakeEnd:
            state = await self._state_of(asked.task_id, mark)
            if state is LookState.CONFLICT:
                raise TaskConflictError(asked.task_id)
            if state is not LookState.ENDED:
                return state
            return await self._client.get_workflow_handle(asked.task_id, result_type=MakeEnd).result()

        return await _begun(temporal, _Run(workflow, asked, asked.task_id, MakeEnd, {names.FINGERPRINT: mark}, found, summary), look)

    async def _ended(self, asked: MakeRequest) -> MakeEnd | None:
        """The end of a task that Temporal may not know any more. Raises TaskConflictError for a task of another request."""
        known = await self._tasks.get(asked.task_id)
        if known is None:
            return None
        require_one_request(known, asked)
        return MakeEnd.model_validate(known, from_attributes=True) if known.ended_at is not None else None

    async def _state_of(self, workflow_id: str, mark: str) -> LookState:
        description = await described(self._client.get_workflow_handle(workflow_id))
        if description is None:
            return LookState.FREE
        if await description.memo_value(names.FINGERPRINT, "", type_hint=str) != mark:
            return LookState.CONFLICT
        return LookState.RUNNING if description.close_time is None else LookState.ENDED


async def _begun(
    temporal: TemporalNexusClient, run: _Run[EndT], look: Callable[[], Awaitable[LookState | EndT]]
) -> TemporalOperationResult[EndT]:
    """The workflow as the operation; if it exists already, the existing one, or its end."""
    reuse, conflict = WorkflowIDReusePolicy.REJECT_DUPLICATE, WorkflowIDConflictPolicy.FAIL
    for _ in range(_ATTEMPTS):
        try:
            return await temporal.start_workflow(
                run.workflow,
                run.argument,
                id=run.id,
                task_queue=names.TASK_QUEUE,
                result_type=run.end,
                id_reuse_policy=reuse,
                id_conflict_policy=conflict,
                memo=run.memo,
                search_attributes=run.found_by,
                static_summary=run.summary,
                priority=run.priority,
            )
        except WorkflowAlreadyStartedError:
            match await look():
                case LookState.RUNNING:
                    conflict = WorkflowIDConflictPolicy.USE_EXISTING
                case LookState():
                    reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE
                case end:
                    return _at_once(end)
    raise HandlerError(f"{run.id} begins and ends again and again.", type=HandlerErrorType.UNAVAILABLE)


def _requests_of(request: CreateToolRequest, request_id: str) -> Iterator[MakeRequest]:
    """The request under one id after the other. Raises HandlerError for an invalid specification."""
    try:
        spec = read_spec(request.spec.model_dump(mode="json"), request.description, "spec")
    except SpecError as error:
        raise HandlerError(f"This is no task that can be begun: {error}", type=HandlerErrorType.BAD_REQUEST) from error
    key = request_key(request.caller.caller_id, request.idempotency_key)
    for attempt in range(_IDS):
        task_id = task_id_for(spec, key or request_id, attempt)
        yield MakeRequest(task_id=task_id, spec=spec, description=request.description, caller=request.caller, key=key)


def _at_once(end: EndT) -> TemporalOperationResult[EndT]:
    return TemporalOperationResult[EndT].sync(end)
