"""Whether a call goes through a lane or gets a workflow of its own, and the properties of tools that decide it."""

from collections.abc import Callable
from dataclasses import dataclass

from toolagent.contracts.call_messages import Listener
from toolagent.contracts.calls import ToolCall
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.core.schemas import FILE_PATH, mentions_format
from toolagent_service.contracts.lanes import LaneMode, Way

MOST_BYTES = 64 * 1024
"""Bytes of parameters. Larger calls would slow down the others in their batch."""

MOST_LEVELS = 180
"""Levels of lists and objects in a call. A batch adds some, and a batch that cannot be read is refused with all its calls."""

SLOW_S = 0.1
"""Seconds. Calls that always take longer get a workflow. Calls that sometimes do move to one, which costs little more. Under
load every tool is slow now and then, and must return to its lane."""


FAST_TIMEOUT_S = 2.0
"""A local activity blocks its workflow and cannot be cancelled, so slower calls are not made at admission."""


@dataclass(frozen=True, slots=True)
class WayFacts:
    """Facts about a call before it is made. `quick_s`: the fastest tenth of the tool's calls took at most this; None: no calls yet."""

    lanes: LaneMode
    is_waited_for: bool
    streams: bool
    names_files: bool
    params_bytes: int
    is_ready: bool
    has_effects: bool
    is_deep: bool = False
    has_role: bool = False
    may_ask: bool = False
    quick_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for a workflow of its own; `says` gives it in words."""

    name: str
    says: str
    holds: Callable[[WayFacts], bool]


REASONS: tuple[Reason, ...] = (
    Reason("off", "`TOOL_AGENT_LANES` is `off`", lambda facts: facts.lanes is LaneMode.OFF),
    Reason("nobody_waits", "the call is asynchronous", lambda facts: not facts.is_waited_for),
    Reason("streams", "the call asks for a stream", lambda facts: facts.streams),
    Reason("asks", "the caller answers questions, and the tool may ask some", lambda facts: facts.may_ask),
    Reason("acts", "the tool has side effects, and `TOOL_AGENT_LANES` is not `all`", lambda facts: _acts(facts)),
    Reason("role", "the tool has a role in a group with a lifecycle", lambda facts: facts.has_role),
    Reason("files", "a parameter may name a file", lambda facts: facts.names_files),
    Reason(
        "large",
        "the parameters are larger than 64 KiB, or nested more than 178 levels deep",
        lambda facts: facts.params_bytes > MOST_BYTES or facts.is_deep,
    ),
    Reason("not_ready", "this process has not started the tool, or has no connection to it", lambda facts: not facts.is_ready),
    Reason("slow", "nine in ten of its calls of the last minute took longer than 0.1 s", lambda facts: (facts.quick_s or 0.0) > SLOW_S),
)
"""In the order of checking. A call without any reason takes the lane."""


def way_of(facts: WayFacts) -> Way:
    return Way.LANE if reason_for_workflow(facts) is None else Way.WORKFLOW


def reason_for_workflow(facts: WayFacts) -> Reason | None:
    return next((reason for reason in REASONS if reason.holds(facts)), None)


def has_effects(entry: ToolEntry) -> bool:
    return entry.manifest.side_effect_scope is not SideEffectScope.NONE


def may_ask(listens: Listener | None, entry: ToolEntry) -> bool:
    """Whether a call may ask its caller a question."""
    return listens is not None and bool(listens.answers) and any(source.traits.asks for source in entry.sources)


def names_files(manifest: ToolManifest) -> bool:
    """Whether calls of the tool may involve files, by its schemas."""
    return mentions_format(manifest.input_schema, FILE_PATH) or mentions_format(manifest.output_schema, FILE_PATH)


def needs_no_slot(entry: ToolEntry, timeout_s: float, *, is_ready: bool) -> bool:
    """Whether a call is so short and harmless that it needs no slot."""
    return not has_effects(entry) and timeout_s <= FAST_TIMEOUT_S and is_ready


def may_begin(*, is_ready: bool, quick_s: float | None) -> bool:
    """Whether a call with a slot may begin at admission: its tool is up there, and not known to be slow. A call that is slow only now
    and then continues as an activity."""
    return is_ready and (quick_s or 0.0) <= SLOW_S


def timeout_of(call: ToolCall, manifest: ToolManifest) -> float:
    """Seconds a call may take: what the caller asks for, never more than the tool allows."""
    return min(call.timeout_s or manifest.timeout_s, manifest.timeout_s)


def _acts(facts: WayFacts) -> bool:
    return facts.has_effects and facts.lanes is not LaneMode.ALL
