"""PostgreSQL for the peer that keeps its state there: its own defaults, so commits reach the disk."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from bench.processes import Child
from engine.network.ports import free_port

_ORDINARY = ("postgres", "nobody")
_USER = "bench"


def postgres_binaries() -> Path | None:
    """The folder of the newest installed server; None when there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


class Postgres:
    """A server in the folder, which becomes an ordinary user's when we are root, as the server demands."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        folder.mkdir()
        self._binaries = binaries
        user = _ordinary_user()
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        data, self.port = folder / "data", free_port()
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", _USER, "-A", "trust", "-E", "UTF8"]
        subprocess.run(initdb, cwd=folder, user=user, check=True, capture_output=True)
        server = [str(binaries / "postgres"), "-D", str(data), "-p", str(self.port), "-k", str(folder), "-c", "listen_addresses=127.0.0.1"]
        self.child = Child(server, folder, "postgres", user=user)
        ready = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        self.child.ready(lambda: subprocess.run(ready, check=False).returncode == 0)

    def create(self, database: str) -> None:
        """Make an empty database. Raises CalledProcessError."""
        createdb = [str(self._binaries / "createdb"), "-h", "127.0.0.1", "-p", str(self.port), "-U", _USER, database]
        subprocess.run(createdb, check=True, capture_output=True)

    def url(self, database: str) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    def async_url(self, database: str) -> str:
        """As our service is told it."""
        return self.url(database).replace("postgresql://", "postgresql+asyncpg://")


def _ordinary_user() -> str | None:
    """Whom to become; None when we are ordinary ourselves."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _ORDINARY if name in known)
