"""Whether a call may be made: one function a check, and one line of CHECKS, in the order of asking."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import JsonValue
from pydantic_core import to_json

from engine.calls.endings import Refused
from engine.calls.file_parameters import FileParameters
from engine.calls.lookup import ToolLookup
from engine.store.calls import CallTable
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult, ValidationIssue
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolDependency, ToolManifest, ToolStatus
from toolagent.core.calls.json_size import MAX_STARTED_VALUES, excess_of
from toolagent.core.calls.results import TOO_LARGE, key_conflict
from toolagent.core.schemas import with_defaults
from toolagent.core.suggestions import nearest
from toolagent.validation.schemas import find_issues
from toolagent.validation.versions import NoSuchVersion, NotARangeError

__all__ = ["CHECKS", "AnsweredBefore", "Asked", "CallLimits", "Check", "Sources", "unmet_dependencies"]

_ANY = "*"
_TOLD = 3


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What the operator allows. Times in seconds, sizes in bytes of JSON."""

    executable: Collection[str]
    max_params_bytes: int
    start_timeout_s: float
    queue_timeout_s: float
    max_values: int = MAX_STARTED_VALUES


@dataclass(frozen=True, slots=True)
class Sources:
    """What checks may look into."""

    lookup: ToolLookup
    calls: CallTable
    files: FileParameters
    limits: CallLimits


@dataclass(frozen=True, slots=True)
class Asked:
    """What the checks before have found out of the call. `fingerprint` tells calls under the same id apart."""

    call_id: str
    call: ToolCall
    fingerprint: str
    params: dict[str, JsonValue]
    """Those of the call, and once they are checked with the defaults of the schema."""
    entry: ToolEntry | None = None

    @property
    def found(self) -> ToolEntry:
        """The version that is called; for checks after the one that finds it."""
        if self.entry is None:
            raise LookupError("The check that finds the tool comes first.")
        return self.entry

    @property
    def manifest(self) -> ToolManifest:
        """Of the version that is called."""
        return self.found.manifest


class AnsweredBefore(Exception):
    """Under its id a call has been made, and this is the answer. It has no effects any more."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.call_id)
        self.result = result


Run: TypeAlias = Callable[[Asked, Sources], Awaitable[Asked]]
"""Gives the call on, with what it has found out. Raises Refused, AnsweredBefore."""


@dataclass(frozen=True, slots=True)
class Check:
    """`reads` says in words what it looks at; `refuses_with` are the types of its refusals. Writes nothing: it may be asked again."""

    name: str
    reads: str
    run: Run
    refuses_with: tuple[ErrorType, ...]


async def _earlier_result(asked: Asked, sources: Sources) -> Asked:
    """Whether the call was made before, under the same id."""
    record = await sources.calls.get(asked.call_id)
    if record is None:
        return asked
    if record.fingerprint != asked.fingerprint:
        # The record is the other call's: of this one nothing is written down.
        raise AnsweredBefore(key_conflict(asked.call_id, asked.call.tool_id, now()))
    if record.result is not None:
        raise AnsweredBefore(record.result)
    return asked


async def _size(asked: Asked, sources: Sources) -> Asked:
    _require_size(asked.params, sources.limits)
    return asked


def _require_size(params: dict[str, JsonValue], limits: CallLimits) -> None:
    encoded = to_json(params)
    size, limit = len(encoded), limits.max_params_bytes
    if size > limit:
        message = (
            f"The parameters are {size} bytes of JSON; at most {limit} are taken (TOOL_AGENT_MAX_PARAMS_BYTES). POST /files takes files."
        )
        raise Refused(ErrorType.VALIDATION_ERROR, message, {"reason": TOO_LARGE, "size": size, "limit": limit})
    if (excess := excess_of(encoded, limits.max_values)) is not None:
        setting = " (TOOL_AGENT_MAX_VALUES). POST /files takes files." if excess.of == "values" else "."
        raise Refused(ErrorType.VALIDATION_ERROR, f"The JSON of the parameters {excess}{setting}", excess.details)


async def _tool(asked: Asked, sources: Sources) -> Asked:
    """Exactly one version, which the call keeps whatever is activated meanwhile."""
    call = asked.call
    try:
        found = await sources.lookup.find(call.tool_id, call.version)
    except NotARangeError as error:
        issue = ValidationIssue(path="$.version", message=str(error), keyword="version")
        raise Refused(ErrorType.VALIDATION_ERROR, str(error), issues=(issue,)) from error
    if isinstance(found, NoSuchVersion):
        raise _no_such_version(call, found)
    if found is not None:
        return replace(asked, entry=found)
    near = nearest(call.tool_id, await sources.lookup.list_ids())
    hint = f" Did you mean {', '.join(near)}?" if near else " GET /tools lists what there is."
    raise Refused(ErrorType.TOOL_NOT_FOUND, f"There is no tool {call.tool_id!r}.{hint}", {"nearest": list(near)})


def _no_such_version(call: ToolCall, found: NoSuchVersion) -> Refused:
    shown = ", ".join(version if version in found.callable else f"{version} (cannot be called)" for version in found.versions[:20])
    message = f"Tool {call.tool_id!r} has no version {call.version!r} that can be called; it has {shown}. The active one is {found.active}."
    return Refused(ErrorType.TOOL_NOT_FOUND, message, {"active_version": found.active, "versions": [*found.versions]})


async def _status(asked: Asked, _: Sources) -> Asked:
    manifest = asked.manifest
    if manifest.status is ToolStatus.ACTIVE:
        return asked
    message = f"Version {manifest.version} of tool {manifest.tool_id!r} is {manifest.status.value} and cannot be called."
    # What somebody took away does not come back by waiting; what is being made does.
    kind = ErrorType.TOOL_NOT_FOUND if manifest.status is ToolStatus.INACTIVE else ErrorType.UNAVAILABLE
    raise Refused(kind, message, {"status": manifest.status.value, "version": manifest.version})


async def _confirmation(asked: Asked, _: Sources) -> Asked:
    manifest = asked.manifest
    if not manifest.requires_confirmation:
        return asked
    # Nobody can be asked yet: running it unasked would break the promise of its manifest.
    message = f"Tool {manifest.tool_id!r} may only run when a person has confirmed the call, and nobody can be asked here."
    raise Refused(ErrorType.PERMISSION_DENIED, message, {"reason": "requires_confirmation"})


async def _streaming(asked: Asked, _: Sources) -> Asked:
    if not asked.call.stream or asked.manifest.stream_support:
        return asked
    message = f"Tool {asked.manifest.tool_id!r} does not stream; leave out `stream`."
    raise Refused(ErrorType.VALIDATION_ERROR, message, issues=(ValidationIssue(path="$.stream", message=message, keyword="stream"),))


async def _executor(asked: Asked, sources: Sources) -> Asked:
    types = [source.type for source in asked.found.sources]
    if any(name in sources.limits.executable for name in types):
        return asked
    has = f"sources of type {', '.join(types)}, which nothing here can run" if types else "no source to run it from"
    raise Refused(ErrorType.EXECUTOR_NOT_FOUND, f"Tool {asked.manifest.tool_id!r} has {has}.", {"source_types": [*types]})


async def _dependencies(asked: Asked, sources: Sources) -> Asked:
    if (error := await unmet_dependencies(asked.manifest, sources.lookup)) is not None:
        raise error
    return asked


async def unmet_dependencies(manifest: ToolManifest, lookup: ToolLookup) -> Refused | None:
    """What a call of the tool would lack; None when nothing. Only what it needs itself: the others say what they need."""
    missing = [(needed, reason) for needed in manifest.dependencies if (reason := await _why_not(needed, lookup))]
    if not missing:
        return None
    told = "; ".join(f"{needed.tool_id} {needed.version}: {reason}" for needed, reason in missing)
    details: list[JsonValue] = [{"tool_id": needed.tool_id, "version": needed.version, "reason": reason} for needed, reason in missing]
    message = f"Tool {manifest.tool_id!r} needs other tools that cannot be called: {told}."
    return Refused(ErrorType.DEPENDENCY_ERROR, message, {"dependencies": details})


async def _why_not(needed: ToolDependency, lookup: ToolLookup) -> str | None:
    try:
        found = await lookup.find(needed.tool_id, None if needed.version == _ANY else needed.version)
    except NotARangeError as error:
        return str(error)
    if found is None:
        return "there is no such tool"
    if isinstance(found, NoSuchVersion):
        return f"no such version can be called; there is {', '.join(found.versions[:20])}"
    status = found.manifest.status
    return None if status is ToolStatus.ACTIVE else f"version {found.manifest.version} is {status.value}"


async def _parameters(asked: Asked, sources: Sources) -> Asked:
    """Whether they fit the input schema, with its defaults."""
    schema = asked.manifest.input_schema
    params = with_defaults(schema, asked.params)
    if params != asked.params:
        _require_size(params, sources.limits)
    issues = await find_issues(schema, params)
    if not issues:
        return replace(asked, params=params)
    listed = "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:_TOLD])
    more = f" (and {len(issues) - _TOLD} more)" if len(issues) > _TOLD else ""
    raise Refused(ErrorType.VALIDATION_ERROR, f"The parameters do not fit the tool's input schema: {listed}{more}", issues=issues)


async def _file_names(asked: Asked, sources: Sources) -> Asked:
    await sources.files.check(asked.manifest.input_schema, asked.params)
    return asked


CHECKS: tuple[Check, ...] = (
    Check("earlier_result", "the record under the call's id", _earlier_result, (ErrorType.REJECTED,)),
    Check("size", "the parameters, the limits of the service", _size, (ErrorType.VALIDATION_ERROR,)),
    Check("tool", "the registry", _tool, (ErrorType.TOOL_NOT_FOUND, ErrorType.VALIDATION_ERROR)),
    Check("status", "the tool's `status`", _status, (ErrorType.TOOL_NOT_FOUND, ErrorType.UNAVAILABLE)),
    Check("confirmation", "the tool's `requires_confirmation`", _confirmation, (ErrorType.PERMISSION_DENIED,)),
    Check("streaming", "the call's `stream`, the tool's `stream_support`", _streaming, (ErrorType.VALIDATION_ERROR,)),
    Check("executor", "the tool's sources, the runtimes of this host", _executor, (ErrorType.EXECUTOR_NOT_FOUND,)),
    Check("dependencies", "the tool's `dependencies`, the registry", _dependencies, (ErrorType.DEPENDENCY_ERROR,)),
    Check("parameters", "the parameters, the tool's `input_schema`", _parameters, (ErrorType.VALIDATION_ERROR,)),
    Check("file_names", "parameters of the format `file-path`", _file_names, (ErrorType.VALIDATION_ERROR, ErrorType.SECURITY_ERROR)),
)
"""The first that refuses has the last word. What was answered is answered again whatever has changed since; after `tool` it is known
which version is called."""
