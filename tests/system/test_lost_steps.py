"""A call is not admitted a third time if the service was killed in its admission twice."""

import sqlite3
from contextlib import closing

import pytest
from pydantic import JsonValue

from engine.calls.endings import STEP_LOST
from tests.system.conftest import MakeService
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ErrorType
from toolagent.core.calls.results import reason_of

pytestmark = pytest.mark.timeout(240)

SLOW: dict[str, JsonValue] = {"mode": "ok", "texts": ["a" * 14 for _ in range(1500)]}
"""Takes some six seconds to be admitted: the schema of `thorough` backtracks over each. Longer texts are seen through at once."""


def _kill_in_admission(service: ServiceProcess, call_id: str, lost: int) -> None:
    """Kill the service during an admission. The workflow task is retried ten seconds later; until then the trace is that of the killed
    process.
    """
    step, trace = f"admit {call_id}", service.state / "steps-under-way"

    def is_under_way() -> bool:
        with closing(sqlite3.connect(f"file:{service.state / 'tool-agent.db'}?mode=ro", uri=True)) as database:
            counted = database.execute("SELECT times FROM lost_steps WHERE step = ?", (step,)).fetchone() or (0,)
        return counted == (lost,) and step.encode() in trace.read_bytes()

    wait_until(is_under_way, "it is being admitted", 60)
    service.kill()


@pytest.mark.promise("accepted-means-ended")
def test_a_call_whose_admission_was_killed_twice_ends_and_says_so(make_service: MakeService) -> None:
    service = make_service()
    service.start()
    call_id = service.begin("thorough", SLOW)
    _kill_in_admission(service, call_id, 0)
    service.start()
    _kill_in_admission(service, call_id, 1)
    service.start()
    result = service.ended_task(call_id, 60).result
    assert result is not None
    assert (result.error_type, reason_of(result)) == (ErrorType.EXECUTION_ERROR, STEP_LOST)
