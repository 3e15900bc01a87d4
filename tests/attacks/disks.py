"""A full disk, and a damaged database file."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.attacks.attack import Attack, Kind, Target, expect
from tests.attacks.catalog import ATTACKER
from tests.attacks.peer import Peer
from tests.attacks.second import refused_start
from tests.disks import tiny_disk
from tests.system.waiting import wait_until

__all__ = ["BROKEN", "KIND"]

_BALLAST = "ballast"
_SAYS_S, _HEALS_S = 15.0, 60.0


@contextmanager
def _on_a_tiny_disk(folder: Path, _peer: Peer) -> Generator[Mapping[str, str]]:
    """Put the state directory on its own disk."""
    with tiny_disk(folder / "disk", "256m") as disk:
        disk.chmod(0o711)
        yield {"STATE_DIR": str(disk / "state")}


def full(target: Target) -> str:
    """`/health` reports the full disk, calls are refused at once, and the service recovers by itself once there is room."""
    ballast = _disk(target) / _BALLAST
    try:
        _fill(ballast)
        wait_until(lambda: not target.ask("GET", "/health").is_success, "/health says that the disk is full", _SAYS_S)
        said = target.ask("GET", "/health").text
        answers = [target.call("echo", {"message": "x"}).status_code, target.call(ATTACKER, {"mode": "sleep", "seconds": 0}).status_code]
        expect(set(answers) == {503}, f"calls on a full disk: {answers}")
    finally:
        ballast.unlink(missing_ok=True)
    wait_until(lambda: target.ask("GET", "/health").is_success, "/health is well again", _HEALS_S)
    wait_until(lambda: target.call("echo", {"message": "x"}).is_success, "a call succeeds again", _HEALS_S)
    return f"503, 503; health said {said[:40]}…; well again"


def full_while_called(target: Target) -> str:
    """A call that runs when the disk becomes full ends once there is room."""
    call_id = target.call(ATTACKER, {"mode": "sleep", "seconds": 4}, mode="async").json()["task_id"]
    ballast = _disk(target) / _BALLAST
    try:
        _fill(ballast)
        wait_until(lambda: not target.ask("GET", "/health").is_success, "/health says that the disk is full", _SAYS_S)
    finally:
        ballast.unlink(missing_ok=True)
    task = wait_until(
        lambda: one if (one := target.ask("GET", f"/tasks/{call_id}").json()).get("result") else None, "the call ends", _HEALS_S
    )
    return str(task["status"])


def _disk(target: Target) -> Path:
    return target.data.parent.parent / "disk"


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"0" * size)
            except OSError:
                continue


def broken_database(target: Target) -> str:
    """Starts with a file that is no database, and with a damaged one: the service names the file and exits."""
    for number, spoil in enumerate((_no_database, _damaged_inside)):
        folder = target.data.parent / f"broken-{number}"
        (folder / "state").mkdir(parents=True, exist_ok=True)
        spoil(target.service.state / "tool-agent.db", folder / "state/tool-agent.db")
        said = refused_start(folder, target.data, {"CATALOG_WATCH": "false"})
        expect("tool-agent.db" in said, f"the file is not named: {said[-300:]}")
    return "both name the file"


def _no_database(_good: Path, bad: Path) -> None:
    bad.write_bytes(os.urandom(100_000))


def _damaged_inside(good: Path, bad: Path) -> None:
    content = bytearray(good.read_bytes())
    # The header stays, what it leads to does not.
    content[100:] = os.urandom(len(content) - 100)
    bad.write_bytes(content)


KIND = Kind(
    "disks",
    (
        Attack("full", "the disk of the state directory is full, then not", full, may_refuse=True, in_ci=False),
        Attack("full-while-called", "the disk becomes full while a call is under way", full_while_called, may_refuse=True, in_ci=False),
    ),
    around=_on_a_tiny_disk,
)
BROKEN = Kind(
    "databases",
    (Attack("broken-database", "a start on a database file that is none, and on a damaged one", broken_database, is_load=True),),
)
