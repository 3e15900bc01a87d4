"""After Ctrl-C, calls end within the grace or go on after the next start."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.system.conftest import MakeService
from tests.system.effects import count_of, wait_for_effect
from tests.system.waiting import wait_until
from toolagent.contracts.tasks import TaskState

pytestmark = pytest.mark.timeout(300)

_GRACE_S = 10
"""As long as ending all processes may take on a busy machine."""


def test_calls_end_within_the_grace_or_go_on_after_the_restart_and_nothing_is_left(make_service: MakeService, effects: Path) -> None:
    service = make_service(SHUTDOWN_GRACE_S=str(_GRACE_S))
    service.is_copied = False  # as people start it
    service.start()
    soon, later = effects.with_name("soon"), effects.with_name("later")
    ending = service.begin("once", {"effects": str(effects), "line": "ending", "until": str(soon)})
    lasting = service.begin("again", {"effects": str(effects), "line": "lasting", "until": str(later)})
    waited = {"effects": str(effects), "line": "waited", "until": str(later)}
    with httpx.Client(base_url=service.api_url, timeout=60, trust_env=False) as http, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.post, "/run_tool", json={"tool_id": "again", "params": waited})
        for line in ("ending", "lasting", "waited"):
            wait_for_effect(effects, line)
        began = time.monotonic()
        service.interrupt()
        soon.touch()
        assert service.wait() == 0
        # A waiting caller and the calls share one grace; what is left is to end processes.
        assert time.monotonic() - began < 2 * _GRACE_S
        with pytest.raises(httpx.TransportError):
            waiting.result()
    service.wait_until_nothing_is_left()

    service.is_copied = True
    service.start()
    assert service.ended_task(ending).status is TaskState.COMPLETED
    assert count_of(effects, "ending") == 1
    later.touch()
    assert service.ended_task(lasting).status is TaskState.COMPLETED

    # Without work it has gone at once.
    assert service.stop() == 0
    assert service.leftovers() == {}
    assert "Traceback" not in service.output


def test_a_second_ctrl_c_ends_it_at_once_and_nothing_is_left(make_service: MakeService, effects: Path) -> None:
    service = make_service(SHUTDOWN_GRACE_S="60")
    service.start()
    service.begin("again", {"effects": str(effects), "line": "lasting", "until": str(effects.with_name("never"))})
    wait_for_effect(effects, "lasting")
    service.interrupt()
    wait_until(lambda: "Ctrl-C again" in service.output, "it says what a second one does")
    service.interrupt()
    assert service.wait() == 128 + signal.SIGINT
    service.wait_until_nothing_is_left()
    assert "Traceback" not in service.output
