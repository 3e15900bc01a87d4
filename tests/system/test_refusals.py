"""Errors that keep the service from starting are one line that names the setting, and leave no process.

One start of each kind: `tests/workers/test_setup.py` and `tests/sandbox/test_policy_file.py` have the settings one by one.
"""

import socket
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import pytest

from engine.network.ports import free_port
from tests.system.refusing import Refused, Start, refused
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.timeout(180)

_PORTS = ("TEMPORAL_PORT", "TEMPORAL_UI_PORT")
_MISSING = [("worker", "DATABASE_URL"), ("api", "TEMPORAL_ADDRESS")]

Said = Callable[..., str]


@pytest.fixture(scope="module")
def taken() -> Generator[int]:
    """A port in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(scope="module")
def nowhere() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def ended(service: ServiceProcess, taken: int, nowhere: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Refused]:
    """All refused starts, by name. They run together, because loading the program once for all saves a minute of processor time."""
    folder = tmp_path_factory.mktemp("refused")
    policy = folder / "policy.yaml"
    policy.write_text("at_leats: docker", "utf-8")
    settings: dict[str, dict[str, str]] = {
        **{f"taken {name}": {name: str(taken)} for name in _PORTS},
        "shared": {"STATE_DIR": str(service.state)},
        "no temporal": {"TEMPORAL_ADDRESS": nowhere},
        "no key": {"FASTAPI_HOST": "0.0.0.0"},  # noqa: S104 - refusing it is the point
        "senseless": {"BUCKET_LIMITS": '{"default": 0}'},
        "policy": {"SANDBOX_POLICY": str(policy)},
    }
    starts = {name: Start(folder / str(number), given) for number, (name, given) in enumerate(settings.items())}
    starts |= {f"{kind} without {name}": Start(folder / f"{kind} {name}", _beside(folder, name), kind) for kind, name in _MISSING}
    deep = folder / ("long" * 20)
    starts["too long"] = Start(deep, {}, variables={"TMPDIR": str(deep)})
    for start in starts.values():
        start.folder.mkdir()
    return refused(starts)


def _beside(folder: Path, missing: str) -> dict[str, str]:
    given = {"TEMPORAL_ADDRESS": "127.0.0.1:1", "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/x.db"}
    return {name: value for name, value in given.items() if name != missing}


@pytest.fixture
def said(ended: Mapping[str, Refused]) -> Said:
    """The output of a start that is refused."""

    def of(name: str, code: int = 1) -> str:
        end = ended[name]
        assert end.code == code, end.err
        assert "Traceback" not in end.err
        assert (end.out, end.left) == ("", {})
        return end.err

    return of


@pytest.mark.parametrize("setting", _PORTS)
def test_a_taken_port_is_said_plainly(said: Said, taken: int, setting: str) -> None:
    assert f"TOOL_AGENT_{setting}" in said(f"taken {setting}")
    assert str(taken) in said(f"taken {setting}")


def test_a_state_directory_of_a_running_service_is_not_shared(said: Said, service: ServiceProcess) -> None:
    assert "TOOL_AGENT_STATE_DIR" in said("shared")
    assert str(service.pid) in said("shared")
    assert service.is_healthy()


def test_a_temporal_server_that_is_not_there_is_named(said: Said, nowhere: str) -> None:
    assert "TOOL_AGENT_TEMPORAL_ADDRESS" in said("no temporal")
    assert nowhere in said("no temporal")


def test_a_service_that_others_reach_wants_a_key(said: Said) -> None:
    assert "TOOL_AGENT_API_KEY" in said("no key")


def test_a_setting_that_makes_no_sense_is_named(said: Said) -> None:
    assert "TOOL_AGENT_BUCKET_LIMITS" in said("senseless", 2)


def test_a_policy_that_cannot_be_used_is_named(said: Said) -> None:
    assert "TOOL_AGENT_SANDBOX_POLICY" in said("policy")
    assert "at_leats" in said("policy")


def test_a_path_that_is_too_long_for_sockets_is_said_plainly(said: Said) -> None:
    assert "socket" in said("too long")
    assert "TOOL_AGENT_STATE_DIR" in said("too long")


@pytest.mark.parametrize(("kind", "name"), _MISSING)
def test_what_a_host_or_a_front_door_needs_is_named_when_it_is_missing(said: Said, kind: str, name: str) -> None:
    assert f"TOOL_AGENT_{name} is not set" in said(f"{kind} without {name}")
