"""The remembered durations of calls."""

import pytest

from engine.calls.effects import timing
from engine.calls.effects.ended import Ended, Places, SettledCalls, UsualDurations
from engine.store.calls import CallTable
from engine.store.database import Database
from tests.store.test_calls import RECORD, RESULT


def test_the_quickest_tenth_counts() -> None:
    durations = UsualDurations()
    for seconds in (0.01, 0.02, *([1.0] * 18)):
        durations.note("t", "1", seconds)
    assert [durations.quick("t", "1"), durations.quick("t", "2")] == [0.02, None]


def test_a_tool_that_was_not_called_here_lately_is_tried_again() -> None:
    at = [0.0]
    durations = UsualDurations(lambda: at[0])
    durations.note("t", "1", 1.0)
    at[0] = 59.0
    assert durations.quick("t", "1") == 1.0
    at[0] = 61.0
    assert durations.quick("t", "1") is None


@pytest.mark.parametrize("was_started", [True, False])
async def test_what_a_call_took_is_noted_once_its_request_was_sent(database: Database, *, was_started: bool) -> None:
    places = Places(CallTable(database), SettledCalls())
    ended = Ended(RECORD, RESULT.model_copy(update={"execution_time": 0.5}), was_started)
    assert await timing.EFFECT.run(ended, places) is ended
    assert places.durations.quick(RECORD.tool_id, RECORD.version) == (0.5 if was_started else None)
