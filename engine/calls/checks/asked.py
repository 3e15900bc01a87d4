"""A call during admission, and the checks that decide about it, each a file of this folder."""

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
from toolagent_service.contracts.steps import CallPlan, OfSession, Placement

_LIVES, _GRACE_S = 3, 60.0
"""How often an attempt may be made, and what it takes besides starting and calling the tool (see `workflows.options`)."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps calls from a version.

    `task_id` is the repair's, if one is under way; `quarantined` as `engine.store.quarantine.input_of`.
    """

    task_id: str | None = None
    meanwhile: Meanwhile = Meanwhile.SERVE
    previous: str | None = None
    quarantined: frozenset[str] = frozenset()


class Troubles(Protocol):
    async def of(self, tool_id: str, version: str) -> Trouble | None:
        """None: nothing, as nearly always. Raises StoreUnavailableError."""
        ...


class NoTroubles:
    """Where tools are neither repaired nor quarantined."""

    async def of(self, tool_id: str, version: str) -> Trouble | None:  # noqa: ARG002 - as the protocol
        return None


class Composites(Protocol):
    """Registry and calls do not know each other; `engine.registry.matching.composites` has one."""

    async def covering(self, query: str) -> CompositeTool | None:
        """What a group answers for a tool that is not there. Raises StoreUnavailableError."""
        ...


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
    """What checks may read."""

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
    """What earlier checks have found out. `fingerprint` distinguishes calls with the same id."""

    call_id: str
    call: ToolCall
    fingerprint: str
    params: dict[str, JsonValue]
    """The parameters of the call; after their check with the defaults of the schema."""
    entry: ToolEntry | None = None
    is_new: bool = False
    """No earlier call has this id."""
    is_stop: bool = False
    """The stop of a session: what was launched is not left running because something else is to be mended."""
    prefer_version: str | None = None
    """The version that has what the session of the call works with."""
    instead_of: str | None = None
    """The version that is under repair; the one before it is called."""
    repair: str | None = None
    """The task of that repair."""

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

    def longest_s(self, limits: CallLimits) -> float:
        """How long the call may take from now on, with all its attempts."""
        return limits.queue_timeout_s + _LIVES * (limits.start_timeout_s + timeout_of(self.call, self.manifest) + _GRACE_S)

    def plan(self, limits: CallLimits, placement: Placement, session: OfSession | None, way: Way) -> CallPlan:
        """All that the later steps know of the admitted call."""
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
    """A call with this id has been made, and this is its answer. It has no further effects."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.call_id)
        self.result = result


class HeldByDoor(Exception):
    """A front door that is alive makes the call."""

    def __init__(self, door: str) -> None:
        super().__init__(door)
        self.door = door


Run: TypeAlias = Callable[[Asked, Sources], Awaitable[Asked]]
"""Returns the call with what it has found out. Raises Refused, AnsweredBefore, HeldByDoor."""


@dataclass(frozen=True, slots=True)
class Check:
    """`reads` says in words what it looks at; `refuses_with` are the types of its refusals. Writes nothing: it may be asked again."""

    name: str
    reads: str
    run: Run
    refuses_with: tuple[ErrorType, ...]
