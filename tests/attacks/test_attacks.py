"""The short attacks on one service: each is answered, and leaves the service healthy.

`make attack` runs all, and measures.
"""

import subprocess
import time
from collections.abc import Generator

import pytest

from tests.attacks.attack import Attack, Target, expect
from tests.attacks.catalog import ATTACKER, attack_catalog
from tests.attacks.kinds import KINDS
from tests.attacks.peer import running_peer
from tests.attacks.remains import files_left, sandboxed
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

# Only kinds that want nothing special of their service; a secret for callbacks it has.
_SHORT = [
    pytest.param(attack, id=f"{kind.name}.{attack.name}")
    for kind in KINDS
    if kind.around is None
    for attack in kind.attacks
    if attack.in_ci
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Generator[Target]:
    """The service that all attacks share."""
    folder = tmp_path_factory.mktemp("attacks")
    with running_peer() as peer:
        data = attack_catalog(folder, peer.url)
        service = ServiceProcess(folder / "service", data, SHUTDOWN_GRACE_S="5", SECRET_CALLBACK="of-the-attacks")  # noqa: S106
        service.start()
        try:
            target = Target(service, data, peer, is_long=False)
            assert target.call(ATTACKER, {"mode": "sleep", "seconds": 0}).is_success
            yield target
            target.http.close()
        finally:
            service.end()
            # What failed may be deeper than Python removes.
            subprocess.run(["rm", "-rf", "--", str(service.state / "calls")], check=True)  # noqa: S607
        service.wait_until_nothing_is_left()


@pytest.mark.parametrize("attack", _SHORT)
def test_it_is_answered_and_leaves_nothing(target: Target, attack: Attack) -> None:
    state = target.service.state
    files, processes = files_left(state), sandboxed(state)
    attack.run(target)
    wait_until(lambda: files_left(state) <= files, f"nothing is left: {files_left(state) - files}", 30.0)
    wait_until(lambda: sandboxed(state) <= processes, "no process of a tool is left", 30.0)
    began = time.monotonic()
    assert target.call("echo", {"message": "after"}).is_success
    # No figure: only that it is not stuck. `make attack` judges the times.
    expect(target.ask("GET", "/health").is_success and time.monotonic() - began < 20, "the service is not well after it")
