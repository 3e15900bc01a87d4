"""A second service that wants the first one's ports."""

from urllib.parse import urlsplit

from tests.attacks.attack import Attack, Kind, Target, expect
from tests.attacks.second import refused_start

__all__ = ["KIND"]


# Were the first one stopped in the middle, the second would take its place by right.
_BESIDE = {"in_ci": False, "is_load": True, "has_middle": False}


def port_of_the_api(target: Target) -> str:
    return _refused(target, "api", "FASTAPI_PORT", _port(target.service.api_url))


def port_of_temporal(target: Target) -> str:
    return _refused(target, "temporal", "TEMPORAL_PORT", target.service.temporal_address.rpartition(":")[2])


def state(target: Target) -> str:
    return _refused(target, "state", "STATE_DIR", str(target.service.state))


def _refused(target: Target, name: str, setting: str, value: str) -> str:
    """The second names the taken port and exits; the first goes on."""
    folder = target.data.parent / f"second-{name}"
    folder.mkdir(exist_ok=True)
    said = refused_start(folder, target.data, {setting: value})
    expect(value in said, f"what is taken is not named: {said[-300:]}")
    expect(target.ask("GET", "/health").is_success, "the first one is not well any more")
    return said[-100:]


def _port(url: str) -> str:
    return str(urlsplit(url).port)


KIND = Kind(
    "ports",
    (
        Attack("api", "a second service on the port of the first", port_of_the_api, **_BESIDE),
        Attack("temporal", "the same with the port of its Temporal server", port_of_temporal, **_BESIDE),
        Attack("state", "the same with its state directory", state, **_BESIDE),
    ),
)
