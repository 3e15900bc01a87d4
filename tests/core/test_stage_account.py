"""The stages of a task on Temporal's page."""

from datetime import UTC, datetime, timedelta

from toolagent.contracts.making import Stage
from toolagent_service.making.stage_account import Entered, stage_account

AT = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
ENTERED = (
    Entered(Stage.INSPECT, AT, 0.0),
    Entered(Stage.BUILD, AT + timedelta(seconds=1.25), 0.0),
    Entered(Stage.VERIFY, AT + timedelta(seconds=61), 0.0425),
)


def test_the_stage_that_a_task_is_in_has_no_end_yet() -> None:
    assert stage_account(ENTERED).splitlines() == [
        "- 12:00:00 **inspect** 1.2 s, $0.0000",
        "- 12:00:01 **build** 59.8 s, $0.0425",
        "- 12:01:01 **verify** …",
    ]


def test_the_last_one_ends_with_the_task() -> None:
    assert stage_account(ENTERED, AT + timedelta(seconds=70), 0.0425).splitlines()[-1] == "- 12:01:01 **verify** 9.0 s, $0.0000"


def test_a_task_that_has_not_begun_has_no_stages() -> None:
    assert stage_account((), AT) == ""
