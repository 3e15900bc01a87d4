"""A real PostgreSQL server in a temporary folder, run by an ordinary user; it ends with the tests, however they end."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from engine.network.ports import free_port
from tests.programs import Program
from tests.system.waiting import wait_until

__all__ = ["PASSWORD", "PostgresServer", "postgres_binaries", "postgres_database", "postgres_server"]

PASSWORD = "sesame"  # noqa: S105 - of a server that lives as long as the tests
_USER = "agent"
_INSTALLED = Path("/usr/lib/postgresql")
_STOP_S = 30.0
_SETTINGS = (
    "listen_addresses=127.0.0.1",
    "max_connections=150",
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=off",
    "shared_buffers=32MB",
    "log_min_messages=warning",
)

_EMPTY = """
DO $$ DECLARE of_it text; BEGIN
  PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
  SET LOCAL session_replication_role = replica;  -- in any order
  FOR of_it IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('alembic_version', 'catalog_state') LOOP
    EXECUTE format('DELETE FROM %I', of_it);
  END LOOP;
  PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) FROM pg_sequences;
END $$
"""
"""Truncating makes new files for each table, which takes ten times as long where there are few rows."""


def postgres_binaries() -> Path | None:
    """The folder of the newest installed server; None if there is none."""
    candidates = sorted(_INSTALLED.glob("*/bin"), key=lambda folder: int(folder.parent.name.split(".")[0]), reverse=True)
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()
        candidates.append(Path(said))
    return next((folder for folder in candidates if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


class PostgresServer:
    """A server that can be stopped, killed, halted and restarted. Its collation is English, not by bytes."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.port = free_port()
        self._binaries, self._folder, self._data = binaries, folder, folder / "data"
        self._child: subprocess.Popen[bytes] | None = None

    def initialise(self) -> None:
        """Make the empty cluster. Raises CalledProcessError."""
        secret = self._folder / "password"
        secret.write_text(PASSWORD, "ascii")
        if os.geteuid() == 0:
            user = pwd.getpwnam(_ordinary_user())
            for path in (self._folder, secret):
                os.chown(path, user.pw_uid, user.pw_gid)
        options = [
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--locale-provider=icu",
            "--icu-locale=en-US",
            "--auth=scram-sha-256",
            "--no-sync",
        ]
        command = [str(self._binaries / "initdb"), "-D", str(self._data), "-U", _USER, f"--pwfile={secret}", *options]
        subprocess.run([*_as_ordinary_user(), *command], cwd=self._folder, check=True, capture_output=True)

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://{_USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises AssertionError."""
        options = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = [str(self._binaries / "postgres"), "-D", str(self._data), "-p", str(self.port), "-k", str(self._folder), *options]
        with (self._folder / "server.log").open("ab") as log:
            self._child = Program([*_as_ordinary_user(), *command], cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, "PostgreSQL answers", 30.0)

    def stop(self) -> None:
        """Stop as an operator does: connections are ended, nothing is lost."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL, and wait until the processes of the connections have noticed."""
        backends = self._backends()
        self._end(signal.SIGKILL)
        psutil.wait_procs(backends, _STOP_S)

    @contextmanager
    def halted(self) -> Generator[None]:
        """Freezes the server: connections stay open without answers."""
        processes = [psutil.Process(self._running.pid), *self._backends()]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def execute(self, statement: str, database: str = "postgres") -> str:
        """The output of `psql`. Raises CalledProcessError."""
        command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port), "-U", _USER]
        done = subprocess.run(
            [str(self._binaries / command[0]), *command[1:], "-d", database, "-c", statement],
            env={"PGPASSWORD": PASSWORD, "PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def empty(self, database: str) -> None:
        """Delete all rows of its tables, despite other connections."""
        self.execute(_EMPTY, database)

    def end(self) -> None:
        """End the server in any state."""
        if self._child is not None:
            self._end(signal.SIGQUIT)

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._child is not None, "PostgreSQL does not run."
        return self._child

    def _backends(self) -> list[psutil.Process]:
        return psutil.Process(self._running.pid).children(recursive=True)

    def _end(self, how: signal.Signals) -> None:
        self._running.send_signal(how)
        self._running.wait(_STOP_S)
        self._child = None

    def _answers(self) -> bool:
        assert self._running.poll() is None, (self._folder / "server.log").read_text("utf-8")
        command = [str(self._binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode == 0


@contextmanager
def postgres_server(binaries: Path) -> Generator[PostgresServer]:
    """A running server for the block."""
    with tempfile.TemporaryDirectory(prefix="tool-agent-postgres-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(binaries, Path(folder))
        server.initialise()
        server.start()
        try:
            yield server
        finally:
            server.end()


@contextmanager
def postgres_database(server: PostgresServer) -> Generator[str]:
    """The URL of a new database, which is dropped afterwards, despite other connections."""
    name = f"test_{secrets.token_hex(6)}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    try:
        yield server.url(name)
    finally:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _as_ordinary_user() -> list[str]:
    """A command of an ordinary user, which dies with the tests: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return ["setpriv", "--pdeathsig", "KILL", "--"]
    user = pwd.getpwnam(_ordinary_user())
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig", "KILL", "--"]


def _ordinary_user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
