"""The violations that chaos reports, given the rentals of each caller."""

from datetime import UTC, datetime, timedelta

import pytest

from bench.chaos.rental_truth import RentedServer, broken_rentals
from bench.chaos.rentals import Ending, plan_sessions

_AT = datetime(2026, 1, 1, tzinfo=UTC)


def _server(name: str, since: float, until: float | None, version: str = "version-0001", **more: object) -> RentedServer:
    ended = None if until is None else _AT + timedelta(seconds=until)
    known: dict[str, object] = {"ready_after_s": 1, "fails": False, "stops_again": 0, "stops_unanswered": 0}
    told = {"server_id": name, "workflow_version_id": version, "launched_at": _AT + timedelta(seconds=since), "ended_at": ended}
    return RentedServer.model_validate(told | {"ended_by": ended and "stopped"} | known | more)


def test_servers_that_were_stopped_and_replaced_only_when_they_could_not_be_used_keep_every_promise() -> None:
    could_not = [{"fails": True}, {"ready_after_s": None}, {"ended_by": "vanished"}]
    pairs = [(_server("a", 0, 2, f"version-{n}", **why), _server("b", 3, 4, f"version-{n}")) for n, why in enumerate(could_not)]
    assert broken_rentals([*(one for pair in pairs for one in pair), _server("c", 1, 9)], [], 0, 0) == []


def test_a_stop_is_made_again_for_a_lost_answer_for_a_kill_and_for_what_vanished() -> None:
    lost = _server("a", 0, 2, "version-1", stops_again=2, stops_unanswered=2)
    gone = _server("b", 0, 2, "version-2", stops_again=1, ended_by="vanished")
    killed = _server("c", 0, 2, "version-3", stops_again=1)
    assert broken_rentals([lost, gone, killed], [], 4, 1) == []
    assert broken_rentals([lost, gone, killed], [], 4, 0) == ["1 stops of servers that were known to be stopped, at 0 kills"]
    assert broken_rentals([lost], [], 3, 0) == ["1 stops of servers that never were"]


@pytest.mark.parametrize(
    ("servers", "living", "fault"),
    [
        ([_server("a", 0, None)], [], "server a of version-0001 still runs"),
        ([_server("a", 0, 5), _server("b", 3, 4)], [], "version-0001 had b launched while it had a"),
        ([_server("a", 0, 2), _server("b", 3, 4)], [], "version-0001 had b launched again after a"),
        ([], ["session-1"], "session session-1 still lives"),
    ],
)
def test_what_was_rented_for_nothing_is_held_against_us(servers: list[RentedServer], living: list[str], fault: str) -> None:
    assert broken_rentals(servers, living, 0, 0) == [fault]


def test_a_seed_plans_the_same_sessions_with_every_ending() -> None:
    planned = plan_sessions(7, 300)
    assert planned == plan_sessions(7, 300)
    assert {one.ending for one in planned} == set(Ending)
