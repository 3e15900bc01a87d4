"""What chaos holds against us, given who rented what."""

from datetime import UTC, datetime, timedelta

import pytest

from bench.chaos.rental_truth import RentedServer, broken_rentals
from bench.chaos.rentals import Ending, plan_sessions

_AT = datetime(2026, 1, 1, tzinfo=UTC)


def _server(name: str, since: float, until: float | None, version: str = "version-0001") -> RentedServer:
    ended = None if until is None else _AT + timedelta(seconds=until)
    return RentedServer(
        server_id=name,
        workflow_version_id=version,
        launched_at=_AT + timedelta(seconds=since),
        ended_at=ended,
        ended_by=ended and "stopped",
    )


def test_servers_that_were_stopped_before_the_next_one_keep_every_promise() -> None:
    assert broken_rentals([_server("b", 3, 4), _server("a", 0, 2), _server("c", 1, 9, "version-0002")], []) == []


@pytest.mark.parametrize(
    ("servers", "living", "fault"),
    [
        ([_server("a", 0, None)], [], "server a of version-0001 still runs"),
        ([_server("a", 0, 5), _server("b", 3, 4)], [], "version-0001 had b launched while it had a"),
        ([], ["session-1"], "session session-1 still lives"),
    ],
)
def test_what_was_rented_for_nothing_is_held_against_us(servers: list[RentedServer], living: list[str], fault: str) -> None:
    assert broken_rentals(servers, living) == [fault]


def test_a_seed_plans_the_same_sessions_with_every_ending() -> None:
    planned = plan_sessions(7, 300)
    assert planned == plan_sessions(7, 300)
    assert {one.ending for one in planned} == set(Ending)
