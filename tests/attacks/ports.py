"""A second service that takes what the first one has."""

import subprocess
import sys
from urllib.parse import urlsplit

from tests.attacks.attack import Attack, Kind, Target, expect
from tests.system.leftovers import processes_of
from tests.system.service_process import child_environment
from tests.system.waiting import wait_until

__all__ = ["KIND"]

_SOON_S = 60.0


def port_of_the_api(target: Target) -> str:
    return _refused(target, "api", "FASTAPI_PORT", _port(target.service.api_url))


def port_of_temporal(target: Target) -> str:
    return _refused(target, "temporal", "TEMPORAL_PORT", target.service.temporal_address.rpartition(":")[2])


def state(target: Target) -> str:
    return _refused(target, "state", "STATE_DIR", str(target.service.state))


def _refused(target: Target, name: str, setting: str, value: str) -> str:
    """It ends by itself, names what is taken, and leaves nothing; the first one goes on."""
    folder = target.data.parent / f"second-{name}"
    folder.mkdir(exist_ok=True)
    command, own = [sys.executable, "-m", "workers", "up"], folder / "state"
    environment = child_environment(own, target.data, {setting: value})
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SOON_S, check=False)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"with {setting} of another service it does not end") from None
    said = done.stdout + done.stderr
    expect(done.returncode != 0, "it ended well")
    expect(value in said and "Traceback" not in said, f"what is taken is not named: {said[-300:]}")
    wait_until(lambda: not processes_of(own), "nothing is left of the second one", 20.0)
    expect(target.ask("GET", "/health").is_success, "the first one is not well any more")
    return " ".join(said.split())[-100:]


def _port(url: str) -> str:
    return str(urlsplit(url).port)


KIND = Kind(
    "ports",
    (
        Attack("api", "a second service on the port of the first", port_of_the_api, in_ci=False, is_load=True),
        Attack("temporal", "the same with the port of its Temporal server", port_of_temporal, in_ci=False, is_load=True),
        Attack("state", "the same with its state directory", state, in_ci=False, is_load=True),
    ),
)
