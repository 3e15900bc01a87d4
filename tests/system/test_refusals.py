"""What keeps the service from starting is said in one line that names the setting; nothing is left running."""

import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.runtimes.ports import free_port
from tests.system.leftovers import processes_of
from tests.system.service_process import ServiceProcess, child_environment

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def taken() -> Generator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def _refusal(tmp_path: Path, exit_code: int, **settings: str) -> str:
    """What `up` says when it cannot run."""
    state = tmp_path / "state"
    done = subprocess.run(
        [sys.executable, "-m", "workers", "up"],
        cwd=tmp_path,
        env=child_environment(state, tmp_path / "data", settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert processes_of(state) == {}
    return done.stderr


@pytest.mark.parametrize("setting", ["FASTAPI_PORT", "TEMPORAL_PORT", "TEMPORAL_UI_PORT"])
def test_a_taken_port_is_said_plainly(tmp_path: Path, taken: int, setting: str) -> None:
    said = _refusal(tmp_path, 1, **{setting: str(taken)})
    assert f"TOOL_AGENT_{setting}" in said
    assert str(taken) in said


def test_a_state_directory_of_a_running_service_is_not_shared(service: ServiceProcess, tmp_path: Path) -> None:
    said = _refusal(tmp_path, 1, STATE_DIR=str(service.state))
    assert "TOOL_AGENT_STATE_DIR" in said
    assert str(service.pid) in said
    assert service.is_healthy()


def test_a_state_directory_that_cannot_be_written_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = _refusal(tmp_path, 1, STATE_DIR=str(tmp_path / "file" / "state"))
    assert "TOOL_AGENT_STATE_DIR" in said
    assert str(tmp_path / "file") in said


def test_a_temporal_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    said = _refusal(tmp_path, 1, TEMPORAL_ADDRESS=address)
    assert "TOOL_AGENT_TEMPORAL_ADDRESS" in said
    assert address in said


def test_a_service_that_others_reach_wants_a_key(tmp_path: Path) -> None:
    said = _refusal(tmp_path, 1, FASTAPI_HOST="0.0.0.0")  # noqa: S104 - refusing it is the point
    assert "TOOL_AGENT_API_KEY" in said


@pytest.mark.parametrize(
    ("setting", "value"), [("FASTAPI_PORT", "http"), ("STOP_GRACE_S", "-1"), ("BUCKET_LIMITS", '{"default": 0}'), ("API_KEY", "")]
)
def test_a_setting_that_makes_no_sense_is_named(tmp_path: Path, setting: str, value: str) -> None:
    assert f"TOOL_AGENT_{setting}" in _refusal(tmp_path, 2, **{setting: value})


@pytest.mark.parametrize(
    ("policy", "named"), [("at_leats: docker", "at_leats"), ("hosts: [", "hosts"), ("write: 3", "write"), (None, "policy.yaml")]
)
def test_a_policy_that_cannot_be_used_is_named(tmp_path: Path, policy: str | None, named: str) -> None:
    file = tmp_path / "policy.yaml"
    if policy is not None:
        file.write_text(policy, "utf-8")
    said = _refusal(tmp_path, 1, SANDBOX_POLICY=str(file))
    assert "TOOL_AGENT_SANDBOX_POLICY" in said
    assert named in said


def test_a_path_that_is_too_long_for_sockets_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    said = _refusal(folder, 1)
    assert "socket" in said
    assert "TOOL_AGENT_STATE_DIR" in said
