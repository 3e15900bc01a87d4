"""What is remembered of how long calls took."""

from engine.calls.usual_durations import UsualDurations


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
