"""The state directory, its owner, and the id of the host."""

import os
import platform
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from workers.failures import CannotRun

_MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The folders of the service, and the id of this host; empty in a process that runs no tools."""

    root: Path
    host: str = ""

    @property
    def database(self) -> Path:
        """SQLite's file, if no other database is named."""
        return self.root / "tool-agent.db"

    @property
    def database_url(self) -> str:
        return f"sqlite+aiosqlite:///{self.database}"

    @property
    def migration_lock(self) -> Path:
        return self.root / "migration.lock"

    @property
    def content(self) -> Path:
        return self.root / "content"

    @property
    def calls(self) -> Path:
        return self.root / "calls"

    @property
    def projects(self) -> Path:
        return self.root / "projects"

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def steps(self) -> Path:
        """The steps of calls that are under way; see `engine.calls.steps`."""
        return self.root / "steps-under-way"

    @property
    def temporal(self) -> Path:
        return self.root / "temporal"

    @property
    def origin(self) -> str:
        """Machine and folder. One process owns them at a time, so a second host with the same origin is the successor of the first."""
        machine = _MACHINE_ID.read_text(encoding="ascii").strip() if _MACHINE_ID.is_file() else "no machine id"
        return f"{self.root} on {platform.node()} ({machine})"


def open_state(root: Path) -> StateDirectory:
    """The directory for a process that runs no tools, shared with others perhaps; created if missing. Raises CannotRun."""
    root = root.absolute()
    with _writable(root):
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return StateDirectory(root=root)


@contextmanager
def owned_state(root: Path, host_id: str | None = None) -> Generator[StateDirectory]:
    """Own the directory until the block ends; created if missing. Without `host_id`, the host has the id kept there. Raises CannotRun."""
    root = open_state(root).root
    lock = FileLock(root / "owner.lock", timeout=0)
    with _writable(root):
        try:
            lock.acquire()
        except Timeout:
            raise CannotRun(_already_owned(root)) from None
    try:
        with _writable(root):
            (root / "owner.pid").write_text(str(os.getpid()), encoding="ascii")
            host = host_id or _host_id(root / "host_id")
        yield StateDirectory(root=root, host=host)
    finally:
        lock.release()


@contextmanager
def _writable(root: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise CannotRun(
            f"The state directory {str(root)!r} cannot be written ({error.strerror}). Set TOOL_AGENT_STATE_DIR to a folder that can."
        ) from error


def _already_owned(root: Path) -> str:
    pid = (root / "owner.pid").read_text(encoding="ascii") if (root / "owner.pid").exists() else "unknown"
    return (
        f"The state directory {str(root)!r} belongs to a running Tool Agent (process {pid}). "
        "Stop it, or set TOOL_AGENT_STATE_DIR to another folder."
    )


def _host_id(path: Path) -> str:
    """The id is kept, so that calls that wait for a tool of this host find it again after a restart."""
    # A process that died after creating the file left it empty.
    kept = path.read_text(encoding="ascii").strip() if path.exists() else ""
    if not kept:
        kept = f"host-{secrets.token_hex(4)}"
        path.write_text(kept, encoding="ascii")
    return kept
