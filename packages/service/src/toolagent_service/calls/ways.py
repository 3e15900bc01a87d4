"""Which way a call takes: by a lane, with others, or by a workflow of its own."""

from collections.abc import Callable
from dataclasses import dataclass

from toolagent_service.contracts.lanes import LaneMode, Way

MOST_BYTES = 64 * 1024
"""Of parameters; what is larger would make its batch a burden to the others of it."""

MOST_LEVELS = 180
"""Of lists and objects in a call; its batch adds some, and one that cannot be read would be refused with all of its calls."""

SLOW_S = 0.1
"""What is always longer than this needs no lane. What is sometimes longer moves: that costs little more than a workflow at once. Under
load every tool is slow now and then, and must come back to its lane."""


@dataclass(frozen=True, slots=True)
class WayFacts:
    """What is known of a call before it is made. `quick_s`: one in ten calls of its tool was over by then; None: none was seen."""

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
    """Why a call has a workflow of its own; `says` it in words."""

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
"""In the order of asking; a call for which none holds takes the lane."""


def way_of(facts: WayFacts) -> Way:
    return Way.LANE if reason_for_workflow(facts) is None else Way.WORKFLOW


def reason_for_workflow(facts: WayFacts) -> Reason | None:
    return next((reason for reason in REASONS if reason.holds(facts)), None)


def _acts(facts: WayFacts) -> bool:
    return facts.has_effects and facts.lanes is not LaneMode.ALL
