"""A call during admission, and the form of the checks in this folder."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from pydantic import JsonValue

from engine.calls.file_parameters import FileParameters
from engine.calls.lookup import ToolLookup
from engine.store.calls import CallTable
from engine.store.claims import ClaimTable
from engine.store.doors import DoorTable
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.matching import CompositeTool
from toolagent.core.calls.json_size import MAX_STARTED_VALUES
from toolagent_service.calls.ways import timeout_of
from toolagent_service.contracts.lanes import Way
from toolagent_service.contracts.repairs import Meanwhile
from toolagent_service.contracts.steps import AdmitRequest, CallPlan, OfSession, Placement

_LIVES, _GRACE_S = 3, 60.0
"""The most attempts, and the time of one besides the start and the call of the tool (see `workflows.options`)."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps calls from a version: a repair (`task_id`, if there is one) and quarantined inputs (see `quarantine.input_of`)."""

    task_id: str | None = None
    meanwhile: Meanwhile = Meanwhile.SERVE
    previous: str | None = None
    quarantined: frozenset[str] = frozenset()


class Troubles(Protocol):
    async def of(self, tool_id: str, version: str) -> Trouble | None:
        """Nearly always None. Raises StoreUnavailableError."""
        ...


class NoTroubles:
    """For services without repairs and quarantines."""

    async def of(self, tool_id: str, version: str) -> Trouble | None:  # noqa: ARG002 - as the protocol
        return None


class Composites(Protocol):
    """Implemented by `engine.registry.matching.composites`, because calls may not import the registry."""

    async def covering(self, query: str) -> CompositeTool | None:
        """The group that stands in for a missing tool. Raises StoreUnavailableError."""
        ...


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of the operator. Times in seconds, sizes in bytes of JSON."""

    executable: Collection[str]
    max_params_bytes: int
    start_timeout_s: float
    queue_timeout_s: float
    max_values: int = MAX_STARTED_VALUES


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources that checks may read."""

    lookup: ToolLookup
    calls: CallTable
    files: FileParameters
    limits: CallLimits
    claims: ClaimTable
    doors: DoorTable
    composites: Composites
    troubles: Troubles = field(default_factory=NoTroubles)


@dataclass(frozen=True, slots=True)
class Asked:
    """A call, and the findings of earlier checks. `fingerprint` distinguishes calls with the same id."""

    call_id: str
    call: ToolCall
    fingerprint: str
    params: dict[str, JsonValue]
    """The parameters; after the check `parameters` with the defaults of the schema."""
    entry: ToolEntry | None = None
    is_new: bool = False
    """No earlier call has this id."""
    is_stop: bool = False
    """The stop of a session. A repair must not keep it from ending the launch."""
    prefer_version: str | None = None
    """The version that holds the state of the session of the call."""
    stops: str | None = None
    """The session that a stop without bindings was found to be of."""
    instead_of: str | None = None
    """The version under repair, if the version before it is called."""
    repair: str | None = None
    """The task of that repair."""

    @classmethod
    def by(cls, request: AdmitRequest, fingerprint: str) -> "Asked":
        """The call before the first check."""
        return cls(
            request.call_id,
            request.call,
            fingerprint,
            request.call.params,
            is_new=request.is_new,
            is_stop=request.is_stop,
            prefer_version=request.prefer_version,
            stops=request.stops,
        )

    @property
    def found(self) -> ToolEntry:
        """The called version. For checks after the one that finds it."""
        if self.entry is None:
            raise LookupError("The check that finds the tool comes first.")
        return self.entry

    @property
    def manifest(self) -> ToolManifest:
        """The manifest of the called version."""
        return self.found.manifest

    def longest_s(self, limits: CallLimits) -> float:
        """The longest time of the call from now on, with all its attempts."""
        return limits.queue_timeout_s + _LIVES * (limits.start_timeout_s + timeout_of(self.call, self.manifest) + _GRACE_S)

    def plan(self, limits: CallLimits, placement: Placement, session: OfSession | None, way: Way) -> CallPlan:
        """The plan of the admitted call, for the later steps."""
        manifest = self.manifest
        return CallPlan(
            call_id=self.call_id,
            tool_id=manifest.tool_id,
            version=manifest.version,
            params=self.params,
            fingerprint=self.fingerprint,
            placement=placement,
            fast=False,
            way=way,
            repeatable=manifest.repeatable,
            timeout_s=timeout_of(self.call, manifest),
            start_timeout_s=limits.start_timeout_s,
            queue_timeout_s=limits.queue_timeout_s,
            priority=self.call.priority,
            caller=self.call.caller,
            session=session,
            instead_of=self.instead_of,
            repair=self.repair,
            listens=self.call.listens,
        )


class AnsweredBefore(Exception):
    """The call was made before, with this answer. It has no further effects."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.call_id)
        self.result = result


class HeldByDoor(Exception):
    """A living front door makes the call."""

    def __init__(self, door: str) -> None:
        super().__init__(door)
        self.door = door


Run: TypeAlias = Callable[[Asked, Sources], Awaitable[Asked]]
"""Returns the call with its findings. Raises Refused, AnsweredBefore, HeldByDoor."""


@dataclass(frozen=True, slots=True)
class Check:
    """`reads` describes what the check looks at; `refuses_with` are the types of its refusals. A check writes nothing."""

    name: str
    reads: str
    run: Run
    refuses_with: tuple[ErrorType, ...]
