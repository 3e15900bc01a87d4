"""Formats as frameworks write them."""

import pytest

from toolagent.validation.schemas import issues_of


@pytest.mark.parametrize("value", ["2026-11-27T20:01:58.422797", "2026-11-27T20:01:58Z", "2026-11-27T20:01:58+01:00"])
def test_a_time_may_be_local(value: str) -> None:
    assert issues_of({"format": "date-time"}, value) == ()
    assert issues_of({"format": "time"}, value.partition("T")[2]) == ()


@pytest.mark.parametrize("value", ["2026-11-27", "2026-13-27T20:01:58", "now", "20:01:58"])
def test_what_is_no_time_is_none(value: str) -> None:
    (issue,) = issues_of({"format": "date-time"}, value)
    assert issue.keyword == "format"
