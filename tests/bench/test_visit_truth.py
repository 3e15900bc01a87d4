"""The violations that chaos reports about calls by MCP clients."""

import pytest
from pydantic import JsonValue

from bench.chaos.plan import Door
from bench.chaos.visit_truth import VisitFate, broken_visits
from bench.chaos.visits import KINDS, PlannedVisit, Visited, Way, plan_visits

_SUCCESS: JsonValue = {"message": "visit"}
_NOT_SENT: JsonValue = {"type": "unavailable", "message": "Not now.", "details": {"sent": False}}


def _fate(task: JsonValue, repeated: JsonValue, effects: int, *ends: JsonValue) -> VisitFate:
    call = PlannedVisit("visit", "acts once", Way.TASK, Door.UP, 0.0)
    return VisitFate(Visited(call, accepted=True, was_task=True, ends=[*ends]), task, repeated, effects)


def _others() -> list[VisitFate]:
    """One visit of each other kind, which kept its promises."""
    visited = [Visited(PlannedVisit(name, name, Way.SINGLE, Door.API, 0.0), accepted=True) for name in KINDS]
    return [VisitFate(one, _SUCCESS, _SUCCESS, int(KINDS[one.call.kind].acts)) for one in visited]


def _faults(fate: VisitFate) -> int:
    return len(broken_visits([*_others(), fate]))


def test_a_task_with_one_end_and_one_effect_keeps_every_promise() -> None:
    assert _faults(_fate(_SUCCESS, _SUCCESS, 1, _SUCCESS)) == 0


@pytest.mark.parametrize(
    "fate",
    [
        _fate(_SUCCESS, _SUCCESS, 2),
        _fate(_SUCCESS, _SUCCESS, 0),
        _fate(_SUCCESS, _SUCCESS, 1, {"message": "another"}),
        _fate(_SUCCESS, None, 1),
        _fate(None, None, 1),
        _fate(_NOT_SENT, _NOT_SENT, 1),
    ],
    ids=["two effects", "no effect", "two ends", "a key without an answer", "no end", "an effect of what was not sent"],
)
def test_a_broken_promise_is_held_against_us(fate: VisitFate) -> None:
    assert _faults(fate) == 1


def test_what_a_client_may_not_be_told_is_held_against_us() -> None:
    fate = _fate(_SUCCESS, _SUCCESS, 1)
    fate.visited.wrongs.append("its session was lost")
    assert broken_visits([*_others(), fate]) == [f"{fate.visited.call.call_id} (acts once) its session was lost"]


def test_a_run_without_a_task_is_no_proof() -> None:
    assert broken_visits(_others()) == ["no call became a task"]


def test_half_of_the_calls_are_tasks_and_a_plan_repeats_by_its_seed() -> None:
    visits = plan_visits(1, 300)
    assert visits == plan_visits(1, 300)
    assert sum(one.way is Way.TASK for one in visits) == 150
    assert {one.way for one in visits} == set(Way)
