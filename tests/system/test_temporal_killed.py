"""The embedded Temporal server is killed during a call, and callers do not notice."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.system.conftest import MakeService
from tests.system.effects import count_of, wait_for_effect
from tests.system.leftovers import is_alive, pid_of_temporal
from tests.system.service_process import run_tool
from tests.system.waiting import wait_until

pytestmark = pytest.mark.timeout(300)


@pytest.mark.promise("accepted-means-ended")
def test_a_waiting_caller_gets_its_result_and_later_calls_work(make_service: MakeService, effects: Path) -> None:
    service, go_on = make_service(), effects.with_name("go on")
    service.start()
    with ThreadPoolExecutor(1) as caller:
        waiting = caller.submit(run_tool, service.http, "once", {"effects": str(effects), "until": str(go_on)})
        wait_for_effect(effects)
        server = pid_of_temporal(service.state)
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not is_alive(server), "the server is dead")
        go_on.touch()
        status, result = waiting.result(90)
    assert (status, result.status) == (200, "success")
    assert count_of(effects) == 1

    def has_new_server() -> bool:
        with suppress(AssertionError):
            return pid_of_temporal(service.state) != server
        return False

    # The caller may have been told before it was there.
    wait_until(has_new_server, "a new server is there")
    wait_until(service.is_healthy, "the service is healthy")
    assert run_tool(service.http, "once", {"effects": str(effects)})[0] == 200
    assert count_of(effects) == 2
