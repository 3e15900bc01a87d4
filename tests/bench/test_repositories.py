"""The table of drawn repositories: how many of those that start by hand became tools, and the notes about the others."""

from pathlib import Path

import pytest
import yaml

from bench.repositories.mocks import free_port, mocked
from bench.repositories.outcomes import Outcome
from bench.repositories.table import written
from bench.repositories.wanted import Wanted, by_hand_of, calls_of, repositories_of

_HERE = Path(__file__).resolve().parents[2] / "bench/repositories"
_DRAWN = tuple(repositories_of(yaml.safe_load((_HERE / "drawn.yaml").read_text("utf-8"))))
_CALLS = calls_of(yaml.safe_load((_HERE / "calls.yaml").read_text("utf-8")))


def _outcome(name: str, status: str, by_hand: bool | None, called: bool | None = None, why: str = "") -> Outcome:
    return Outcome(Wanted("app", "flask", f"somebody/{name}", "0" * 40), status, 1.0, called=called, by_hand=by_hand, why=why)


def test_the_head_counts_tools_and_right_calls_of_those_that_start_by_hand() -> None:
    outcomes = [
        _outcome("right", "completed", True, called=True),
        _outcome("wrong", "completed", True, called=False),
        _outcome("none", "failed", True),
        _outcome("surprise", "completed", False, called=True),
        _outcome("unknown", "completed", None),
    ]
    assert "2 of 3 that start by hand became tools; 1 calls right. Of all 5, 4 became tools." in written(outcomes).splitlines()


@pytest.mark.parametrize(
    ("by_hand", "cell"), [(True, "| yes: Installed. |"), (False, "| no: Installed. |"), (None, "| not tried: Installed. |")]
)
def test_a_row_says_whether_it_starts_by_hand_and_why(by_hand: bool | None, cell: str) -> None:
    assert cell in written([_outcome("one", "completed", by_hand, why="Installed.")])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (None, (None, "")),
        ({}, (None, "")),
        ({"by_hand": False, "why": "It needs Redis."}, (False, "It needs Redis.")),
        ({"by_hand": "no"}, (None, "")),
    ],
)
def test_what_nobody_tried_is_neither_yes_nor_no(call: dict[str, bool | str] | None, told: tuple[bool | None, str]) -> None:
    assert by_hand_of(None if call is None else {**call}) == told


def test_each_drawn_repository_was_tried_by_hand_and_those_that_start_have_a_call() -> None:
    assert list(_CALLS) == [one.repository for one in _DRAWN]
    for repository, call in _CALLS.items():
        starts, why = by_hand_of(call)
        assert starts is not None, repository
        assert why, repository
        assert (starts and "params" in call and "expects" in call) or not (starts or "params" in call), repository


def test_no_server_is_started_beside_what_has_no_document(tmp_path: Path) -> None:
    with mocked(Wanted("program", "python", "somebody/one", "0" * 40), tmp_path, tmp_path, free_port()) as server:
        assert server == {}
    assert list(tmp_path.iterdir()) == []
