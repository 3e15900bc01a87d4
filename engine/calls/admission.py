"""Whether a call may be made, and how: everything that is decided before it is (DESIGN §3, admit)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import to_json

from engine.calls.dependencies import unmet_dependencies
from engine.calls.endings import events_of, lost_step
from engine.calls.file_parameters import FileParameters, FileRefused
from engine.calls.lookup import ToolLookup
from engine.calls.placements import Placements
from engine.calls.settled import SettledCalls
from engine.store.calls import CallTable
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolStatus
from toolagent.contracts.records import CallRecord
from toolagent.contracts.steps import Admission, AdmitRequest, Admitted, Answered, CallPlan, Placement, PlaceRequest
from toolagent.core.dispatch import is_fast, timeout_of
from toolagent.core.idempotency import fingerprint
from toolagent.core.json_size import MAX_STARTED_VALUES, excess_of
from toolagent.core.results import IDEMPOTENCY_CONFLICT, TOO_LARGE, failed, reason_of
from toolagent.core.schemas import with_defaults
from toolagent.core.suggestions import nearest
from toolagent.validation.schemas import find_issues
from toolagent.validation.versions import NoSuchVersion, NotARangeError

__all__ = ["Admissions", "CallLimits", "Decision"]

IsRunning = Callable[[ToolEntry], bool]


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What the operator allows. Times in seconds, sizes in bytes of JSON."""

    executable: Collection[str]
    max_params_bytes: int
    start_timeout_s: float
    queue_timeout_s: float
    max_values: int = MAX_STARTED_VALUES


@dataclass(frozen=True, slots=True)
class Decision:
    """`entry` is the tool of an admitted call."""

    admission: Admission
    entry: ToolEntry | None = None


class Refused(Exception):
    """The call is not made; this is why."""

    def __init__(self, error: ToolError, issues: tuple[ValidationIssue, ...] = ()) -> None:
        super().__init__(error.message)
        self.error = error
        self.issues = issues


class Admissions:
    """Decides about calls. Writes only how refused ones ended, keyed by the call id, so it may be asked again."""

    def __init__(
        self,
        lookup: ToolLookup,
        calls: CallTable,
        files: FileParameters,
        placements: Placements,
        settled: SettledCalls,
        limits: CallLimits,
    ) -> None:
        self._lookup = lookup
        self._placements = placements
        self._settled = settled
        self._calls = calls
        self._files = files
        self._limits = limits

    async def admit(self, request: AdmitRequest, is_running: IsRunning) -> Decision:
        """A plan for the call, or its answer: an earlier one under the same id, or why it is refused."""
        call = request.call
        mark = fingerprint(call)
        try:
            earlier = await self._earlier(request.call_id, mark)
            if earlier is not None:
                return Decision(Answered(result=earlier))
            _insist_on_size(call.params, self._limits)
            entry = await self._find(call)
            self._insist_on_callable(entry, call)
            await self._insist_on_dependencies(entry)
            params = await self._check_params(entry, call)
        except Refused as refusal:
            result = failed(request.call_id, call.tool_id, refusal.error, now(), validation_errors=refusal.issues)
            if reason_of(result) != IDEMPOTENCY_CONFLICT:
                result = await self._calls.settle(_record_of_refused(request, mark), result, events_of(result, started=False))
                self._settled.tell(result)
            return Decision(Answered(result=result))
        return Decision(Admitted(plan=await self._plan(request, entry, params, mark, is_running)), entry)

    async def give_up(self, request: AdmitRequest, lost: int) -> Answered:
        """The answer of a call whose admission was lost with its worker so often. A tool without effects may have been called in it."""
        error = lost_step("Admitting the call", lost, "unknown")
        result = failed(request.call_id, request.call.tool_id, error, now())
        record = _record_of_refused(request, fingerprint(request.call))
        result = await self._calls.settle(record, result, events_of(result, started=False))
        self._settled.tell(result)
        return Answered(result=result)

    async def place(self, request: PlaceRequest) -> Placement:
        """Where to wait now."""
        entry = await self._lookup.entry(request.plan.tool_id, request.plan.version)
        return await self._placements.choose(entry, request.plan.placement.host) if entry else request.plan.placement

    async def _earlier(self, call_id: str, mark: str) -> ToolResult | None:
        record = await self._calls.get(call_id)
        if record is None:
            return None
        if record.fingerprint != mark:
            message = "This idempotency key or call id was used for another call: other tool, version or params. Choose a new one."
            raise Refused(ToolError(type=ErrorType.REJECTED, message=message, details={"reason": IDEMPOTENCY_CONFLICT}))
        return record.result

    async def _find(self, call: ToolCall) -> ToolEntry:
        """Exactly one version: the call keeps it whatever is activated meanwhile."""
        try:
            found = await self._lookup.find(call.tool_id, call.version)
        except NotARangeError as error:
            issue = ValidationIssue(path="$.version", message=str(error), keyword="version")
            raise Refused(ToolError(type=ErrorType.VALIDATION_ERROR, message=str(error)), (issue,)) from error
        if isinstance(found, NoSuchVersion):
            raise Refused(_no_such_version(call, found))
        if found is not None:
            return found
        near = nearest(call.tool_id, await self._lookup.list_ids())
        hint = f" Did you mean {', '.join(near)}?" if near else " GET /tools lists what there is."
        message = f"There is no tool {call.tool_id!r}.{hint}"
        raise Refused(ToolError(type=ErrorType.TOOL_NOT_FOUND, message=message, details={"nearest": list(near)}))

    def _insist_on_callable(self, entry: ToolEntry, call: ToolCall) -> None:
        manifest = entry.manifest
        if manifest.status is not ToolStatus.ACTIVE:
            message = f"Version {manifest.version} of tool {manifest.tool_id!r} is {manifest.status.value} and cannot be called."
            details: JsonValue = {"status": manifest.status.value, "version": manifest.version}
            # What somebody took away does not come back by waiting; what is being made does.
            kind = ErrorType.TOOL_NOT_FOUND if manifest.status is ToolStatus.INACTIVE else ErrorType.UNAVAILABLE
            raise Refused(ToolError(type=kind, message=message, details=details))
        if manifest.requires_confirmation:
            # Nobody can be asked yet: running it unasked would break the promise of its manifest.
            message = f"Tool {manifest.tool_id!r} may only run when a person has confirmed the call, and nobody can be asked here."
            raise Refused(ToolError(type=ErrorType.PERMISSION_DENIED, message=message, details={"reason": "requires_confirmation"}))
        if call.stream and not manifest.stream_support:
            message = f"Tool {manifest.tool_id!r} does not stream; leave out `stream`."
            issue = ValidationIssue(path="$.stream", message=message, keyword="stream")
            raise Refused(ToolError(type=ErrorType.VALIDATION_ERROR, message=message), (issue,))
        types = [source.type for source in entry.sources]
        if not any(name in self._limits.executable for name in types):
            has = f"sources of type {', '.join(types)}, which nothing here can run" if types else "no source to run it from"
            message = f"Tool {manifest.tool_id!r} has {has}."
            raise Refused(ToolError(type=ErrorType.EXECUTOR_NOT_FOUND, message=message, details={"source_types": [*types]}))

    async def _insist_on_dependencies(self, entry: ToolEntry) -> None:
        if (error := await unmet_dependencies(entry.manifest, self._lookup)) is not None:
            raise Refused(error)

    async def _check_params(self, entry: ToolEntry, call: ToolCall) -> dict[str, JsonValue]:
        schema = entry.manifest.input_schema
        params = with_defaults(schema, call.params)
        if params != call.params:
            _insist_on_size(params, self._limits)
        issues = await find_issues(schema, params)
        if issues:
            listed = "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:3])
            more = f" (and {len(issues) - 3} more)" if len(issues) > 3 else ""
            message = f"The parameters do not fit the tool's input schema: {listed}{more}"
            raise Refused(ToolError(type=ErrorType.VALIDATION_ERROR, message=message), issues)
        try:
            await self._files.check(schema, params)
        except FileRefused as refusal:
            raise Refused(refusal.error, refusal.issues) from refusal
        return params

    async def _plan(
        self, request: AdmitRequest, entry: ToolEntry, params: dict[str, JsonValue], mark: str, is_running: IsRunning
    ) -> CallPlan:
        manifest = entry.manifest
        timeout_s = timeout_of(request.call, manifest)
        return CallPlan(
            call_id=request.call_id,
            tool_id=manifest.tool_id,
            version=manifest.version,
            params=params,
            fingerprint=mark,
            placement=await self._placements.choose(entry),
            fast=is_fast(entry, timeout_s, running_here=is_running(entry)),
            repeatable=manifest.repeatable,
            timeout_s=timeout_s,
            start_timeout_s=self._limits.start_timeout_s,
            queue_timeout_s=self._limits.queue_timeout_s,
            priority=request.call.priority,
            caller=request.call.caller,
        )


def _no_such_version(call: ToolCall, found: NoSuchVersion) -> ToolError:
    shown = ", ".join(version if version in found.callable else f"{version} (cannot be called)" for version in found.versions[:20])
    message = f"Tool {call.tool_id!r} has no version {call.version!r} that can be called; it has {shown}. The active one is {found.active}."
    details: JsonValue = {"active_version": found.active, "versions": [*found.versions]}
    return ToolError(type=ErrorType.TOOL_NOT_FOUND, message=message, details=details)


def _record_of_refused(request: AdmitRequest, mark: str) -> CallRecord:
    """Without its parameters: which of them are secret is not known of a call that does not fit its tool."""
    return CallRecord(
        call_id=request.call_id,
        tool_id=request.call.tool_id,
        version=request.call.version or "",
        fingerprint=mark,
        workflow_id=request.workflow_id,
        run_id=request.run_id,
        caller=request.call.caller,
        created_at=now(),
    )


def _insist_on_size(params: dict[str, JsonValue], limits: CallLimits) -> None:
    encoded = to_json(params)
    size, limit = len(encoded), limits.max_params_bytes
    if size > limit:
        message = (
            f"The parameters are {size} bytes of JSON; at most {limit} are taken (TOOL_AGENT_MAX_PARAMS_BYTES). POST /files takes files."
        )
        details: JsonValue = {"reason": TOO_LARGE, "size": size, "limit": limit}
        raise Refused(ToolError(type=ErrorType.VALIDATION_ERROR, message=message, details=details))
    if (excess := excess_of(encoded, limits.max_values)) is not None:
        setting = " (TOOL_AGENT_MAX_VALUES). POST /files takes files." if excess.of == "values" else "."
        message = f"The JSON of the parameters {excess}{setting}"
        raise Refused(ToolError(type=ErrorType.VALIDATION_ERROR, message=message, details=excess.details))
