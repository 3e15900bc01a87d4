"""A shorter `make chaos` (all of it with `make long`): worker, API and Temporal are killed under load of calls and sessions."""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from bench.processes import bare_environment
from bench.service import python_path
from tests.system.leftovers import processes_of

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def temporary() -> Generator[Path]:
    """A folder outside of pytest's, which PostgreSQL's user cannot enter."""
    with tempfile.TemporaryDirectory(prefix="tool-agent-test-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


_MANY = [
    pytest.param(200, 6, ("--lanes", lanes, "--database", database), marks=pytest.mark.long)
    for lanes in ("off", "harmless", "all")
    for database in ("sqlite", "postgresql")
]


@pytest.mark.parametrize(("calls", "kills", "more"), _MANY)
def test_calls_under_kill_9_end_with_one_result_each_and_leave_nothing(
    temporary: Path, calls: int, kills: int, more: tuple[str, ...]
) -> None:
    _chaos(temporary, kills, "--seed", "2", "--calls", str(calls), *more)


@pytest.mark.long
def test_sessions_under_kill_9_at_a_failing_provider_end_with_their_stop_and_leave_nothing(temporary: Path) -> None:
    """The seed has only sessions that end soon: by their callers, by a workflow, and by termination."""
    told = _chaos(temporary, 1, "--seed", "166", "--sessions", "6", "--lanes", "all", "--database", "sqlite")
    assert "Whatever was launched is stopped" in told


@pytest.mark.long
def test_calls_of_mcp_clients_under_kill_9_end_with_one_result_each_and_leave_nothing(temporary: Path) -> None:
    """The calls are tasks, in sessions, and single ones. Processes of the imported server are killed too."""
    _chaos(temporary, 2, "--seed", "2", "--mcp", "20", "--database", "sqlite")


def _chaos(temporary: Path, kills: int, *words: str) -> str:
    """The output of a run that succeeded and left nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.chaos", "--kills", str(kills), *words],
        cwd=temporary,
        env=bare_environment() | {"PYTHONPATH": python_path(), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=890,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"killed {kills} times" in done.stdout
    assert [*temporary.iterdir()] == []
    assert processes_of(temporary) == {}
    return done.stdout
