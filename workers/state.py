"""The state directory: whose it is, and who the host is."""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from workers.failures import CannotRun

__all__ = ["StateDirectory", "owned_state"]


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """Where everything lies, and the id by which this host is known."""

    root: Path
    host: str

    @property
    def database_url(self) -> str:
        return f"sqlite+aiosqlite:///{self.root / 'tool-agent.db'}"

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
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def temporal(self) -> Path:
        return self.root / "temporal"


@contextmanager
def owned_state(root: Path) -> Generator[StateDirectory]:
    """Own the directory until the block ends; it is made if need be. Raises CannotRun."""
    root = root.absolute()
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(root / "owner.lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise CannotRun(_already_owned(root)) from None
    except OSError as error:
        raise CannotRun(
            f"The state directory {str(root)!r} cannot be written ({error.strerror}). Set TOOL_AGENT_STATE_DIR to a folder that can."
        ) from error
    try:
        (root / "owner.pid").write_text(str(os.getpid()), encoding="ascii")
        yield StateDirectory(root=root, host=_host_id(root / "host_id"))
    finally:
        lock.release()


def _already_owned(root: Path) -> str:
    pid = (root / "owner.pid").read_text(encoding="ascii") if (root / "owner.pid").exists() else "unknown"
    return (
        f"The state directory {str(root)!r} belongs to a running Tool Agent (process {pid}). "
        "Stop it, or set TOOL_AGENT_STATE_DIR to another folder."
    )


def _host_id(path: Path) -> str:
    """Kept, so that calls that wait for a tool of this host find it again after a restart."""
    if not path.exists():
        path.write_text(f"host-{secrets.token_hex(4)}", encoding="ascii")
    return path.read_text(encoding="ascii").strip()
