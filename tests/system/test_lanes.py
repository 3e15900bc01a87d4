"""Calls in a lane at the real service are recorded, moved and cancelled, and never made twice, whatever is killed."""

import threading
from collections.abc import Callable, Generator
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from tests.system.effects import count_of, own_effects, wait_for_effect
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.lanes import LaneListing
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.idempotency import call_id_for_key

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def service(catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    """A service whose acting tools are up, because a tool that must be started does not use the lane."""
    service = ServiceProcess(tmp_path_factory.mktemp("lanes"), catalog, LANES="all")
    service.start()
    for tool in ("once", "again"):
        _, result = run_tool(service.http, tool, {"effects": str(own_effects(catalog)), "line": f"first {tool}"})
        assert result.metadata["way"] == "workflow"
    yield service
    service.end()
    service.wait_until_nothing_is_left()


def _acting(effects: Path, go_on: Path, line: str) -> dict[str, JsonValue]:
    return {"effects": str(effects), "until": str(go_on), "line": line}


def _beside(call: Callable[[], object]) -> threading.Thread:
    """Make a call in a thread, and ignore that its connection breaks when the service dies."""

    def made() -> None:
        try:
            call()
        except httpx.HTTPError:
            return

    thread = threading.Thread(target=made, daemon=True)
    thread.start()
    return thread


def test_short_calls_share_a_lane_and_people_see_what_it_does(service: ServiceProcess) -> None:
    _, result = run_tool(service.http, "echo", {"message": "hello"})
    assert (result.result, result.metadata["way"]) == ({"message": "hello"}, "lane")
    again = [run_tool(service.http, "echo", {"message": "once"}, "one key")[1] for _ in range(2)]
    assert again[0] == again[1]
    status, conflict = run_tool(service.http, "echo", {"message": "other"}, "one key")
    assert (status, conflict.error_type) == (409, ErrorType.REJECTED)
    (lane,) = wait_until(
        lambda: lanes if (lanes := LaneListing.model_validate_json(service.http.get("/lanes").content).lanes)[0].figures.calls else None,
        "the lane says what it did",
    )
    assert lane.figures.last_error == ""
    assert service.task(again[0].call_id).status is TaskState.COMPLETED


def test_a_slow_call_moves_is_made_once_and_can_be_cancelled(service: ServiceProcess, effects: Path) -> None:
    go_on = effects.with_name("go on")

    def way_of_slow(key: str) -> JsonValue:
        found = list[ToolResult]()
        _beside(lambda: found.append(run_tool(service.http, "again", _acting(effects, go_on, key), key)[1]))
        wait_for_effect(effects, key)
        _, quick = run_tool(service.http, "echo", {"message": "beside"})
        assert quick.status == "success"
        go_on.touch()
        (slow,) = wait_until(lambda: found, "the slow call ends")
        assert (slow.status, count_of(effects, key)) == ("success", 1)
        go_on.unlink()
        return slow.metadata["way"]

    # On a busy machine a lane may not begin a call within its budget: then its workflow makes it.
    assert any(way_of_slow(f"slow-{number}") == "lane" for number in range(10))
    cancelled = list[ToolResult]()
    _beside(lambda: cancelled.append(run_tool(service.http, "once", _acting(effects, go_on, "cancelled"), "cancelled")[1]))
    wait_for_effect(effects, "cancelled")
    service.http.post(f"/tasks/{_id_of('cancelled')}/cancel").raise_for_status()
    (result,) = wait_until(lambda: cancelled, "the cancelled call ends")
    assert result.error_type is ErrorType.CANCELLED
    assert count_of(effects, "cancelled") == 1


@pytest.mark.promise("never-twice", "accepted-means-ended")
def test_what_was_accepted_ends_once_after_a_kill_though_nobody_asks_again(service: ServiceProcess, effects: Path) -> None:
    go_on = effects.with_name("go on")
    for tool in ("once", "again"):
        _beside(lambda tool=tool: run_tool(service.http, tool, _acting(effects, go_on, tool), f"killed {tool}"))
        wait_for_effect(effects, tool)
    service.kill()
    go_on.touch()
    service.start()
    once = service.ended_task(_id_of("killed once"), 90).result
    again = service.ended_task(_id_of("killed again"), 90).result
    assert once is not None
    assert again is not None
    assert (once.error_type, count_of(effects, "once")) == (ErrorType.EXECUTION_ERROR, 1)
    assert again.status == "success"


def _id_of(key: str) -> str:
    return call_id_for_key(None, key)
