"""Tools made of descriptions by a scripted model, over HTTP at a running service: each once, or not at all."""

import random
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from tests.system.catalog import make_catalog
from tests.system.killed_builds import cancelled_build, killed_build
from tests.system.making_tasks import (
    asked,
    conversation,
    ended,
    key_that_withholds,
    left_of,
    serving,
    word_counter,
)
from tests.system.service_process import ServiceProcess
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import Scenario

pytestmark = pytest.mark.timeout(400)

_TURN_S = 0.2
"""So that something can happen in the middle of a turn."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_catalog(tmp_path_factory.mktemp("making"))


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[ServiceProcess, ModelServer]]:
    """One service for all tasks with a model, and that model; each test has its own tools."""
    tools = ("killed", "cancelled_1", "cancelled_2", "cancelled_3")
    conversations = (*(conversation("word_counter", tool) for tool in tools), conversation("looked_up", "looked_up"))
    scenario = Scenario(seconds=_TURN_S, conversations=conversations)
    with serving(tmp_path_factory.mktemp("made"), data, scenario, CODING_ROUNDS="1") as both:
        yield both


@pytest.fixture
def chance() -> random.Random:
    return random.Random(5)  # noqa: S311 - moments


@pytest.mark.long
def test_a_tool_that_looks_its_answers_up_is_refused_and_leaves_nothing(made: tuple[ServiceProcess, ModelServer]) -> None:
    service, _ = made
    # It knows the answers to the examples that it is shown, and not to the one that is kept back.
    spec = word_counter("looked_up")
    task_id = asked(service, spec, key_that_withholds(spec, 2))
    task = ended(service, task_id)
    assert task.status is TaskState.FAILED
    assert "withheld examples" in task.reason
    # All that it could know is right.
    assert "given examples" not in task.reason
    assert left_of(service, task_id, "looked_up") == {}
    assert service.http.get("/tools/looked_up").status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.long)])
def test_a_build_whose_service_is_killed_is_done_once_paid_once_and_judged_by_examples_that_the_model_never_saw(
    made: tuple[ServiceProcess, ModelServer], chance: random.Random, kills: int
) -> None:
    service, model = made
    outcome = killed_build(service, model, "killed", kills, chance)
    assert outcome.faults == []
    assert len(outcome.moments) == kills, outcome


@pytest.mark.long
def test_cancelled_builds_leave_nothing_but_their_log_and_reason(made: tuple[ServiceProcess, ModelServer]) -> None:
    # Each at a moment that follows from its number.
    chances = {f"cancelled_{number}": random.Random(number) for number in (1, 2, 3)}  # noqa: S311
    outcomes = [cancelled_build(made[0], tool_id, chance) for tool_id, chance in chances.items()]
    assert {outcome.tool_id: outcome.faults for outcome in outcomes if outcome.faults} == {}
    assert TaskState.CANCELLED in {outcome.status for outcome in outcomes}, "all came too late"
