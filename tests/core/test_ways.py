"""Which way a call takes."""

from dataclasses import replace

import pytest

from toolagent_service.calls.ways import REASONS, Reason, WayFacts, reason_for_workflow, way_of
from toolagent_service.contracts.lanes import LaneMode, Way

QUICK = WayFacts(
    lanes=LaneMode.HARMLESS, is_waited_for=True, streams=False, names_files=False, params_bytes=100, is_ready=True, has_effects=False
)
HOLDS: dict[str, WayFacts] = {
    "off": replace(QUICK, lanes=LaneMode.OFF),
    "nobody_waits": replace(QUICK, is_waited_for=False),
    "streams": replace(QUICK, streams=True),
    "asks": replace(QUICK, may_ask=True),
    "acts": replace(QUICK, has_effects=True),
    "role": replace(QUICK, has_role=True),
    "files": replace(QUICK, names_files=True),
    "large": replace(QUICK, params_bytes=64 * 1024 + 1),
    "not_ready": replace(QUICK, is_ready=False),
    "slow": replace(QUICK, quick_s=0.2),
}


def test_a_short_call_without_side_effects_takes_the_lane() -> None:
    assert way_of(QUICK) is Way.LANE
    assert way_of(replace(QUICK, quick_s=0.1, params_bytes=64 * 1024)) is Way.LANE


def test_what_acts_takes_it_where_all_do() -> None:
    assert way_of(replace(QUICK, has_effects=True, lanes=LaneMode.ALL)) is Way.LANE


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_each_reason_gives_a_call_a_workflow_of_its_own(reason: Reason) -> None:
    found = reason_for_workflow(HOLDS[reason.name])
    assert found is reason
