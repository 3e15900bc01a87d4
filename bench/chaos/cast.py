"""Who plays: a database, Temporal, an API, two hosts and one that is both, each in a process that can be killed and started again."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path

import httpx
import psutil
from pydantic import JsonValue

from bench.chaos.plan import SERVICE, Door, Victim
from bench.postgres import Postgres, postgres_binaries
from bench.processes import Child, NotReadyError, is_free, until
from bench.service import ROOT, make_catalog, python_path
from engine.network.ports import free_port
from engine.runtimes.process.ownership import Owner
from toolagent_service.contracts.lanes import LaneMode
from workers.temporal.dev_server import read_config, server_command, temporal_binary

_UP_S = 120.0
_GONE_S = 30.0
_TOLD = 1500
_HOSTS = (Victim.WORKER_1, Victim.WORKER_2, Victim.UP)


class DatabaseKind(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


class Cast:
    """All of it under `folder`. Everybody has been ready once when the block begins, and is gone when it ends.

    Without `lanes` the default of the service holds; without `database` it is PostgreSQL where that is installed, else SQLite. `settings`
    are those of the service, `limits` of groups, by their ids. `imported` says what `mcp.json` is to have, given a folder that servers may
    read and the folder of effects.
    """

    def __init__(
        self,
        folder: Path,
        lanes: LaneMode | None = None,
        database: DatabaseKind | None = None,
        settings: Mapping[str, str] | None = None,
        limits: Mapping[str, Mapping[str, JsonValue]] | None = None,
        imported: Callable[[Path, Path], JsonValue] | None = None,
    ) -> None:
        self.folder, self.effects = folder, folder / "effects"
        self._lanes, self._wanted, self._settings, self._limits = lanes, database, settings or {}, limits or {}
        self._imported = imported
        self._caller: Sequence[str] = ()
        self.kills = dict.fromkeys(Victim, 0)
        self.revivals = dict.fromkeys(Victim, 0)
        self._resting: set[Victim] = set()
        self._stack = ExitStack()
        self._children: dict[Victim, Child] = {}

    def __enter__(self) -> "Cast":
        with ExitStack() as stack:
            self._begin(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def temporal_address(self) -> str:
        return f"127.0.0.1:{self.temporal_port}"

    @property
    def urls(self) -> Mapping[Door, str]:
        """Where calls come in."""
        return {door: f"http://127.0.0.1:{port}" for door, port in self._ports.items()}

    def kill(self, victim: Victim) -> None:
        """SIGKILL to this one process; counted. What it started is left to whoever has to see to it."""
        self._resting.add(victim)
        self._children[victim].kill()
        self.kills[victim] += 1

    def start(self, victim: Victim) -> None:
        """Without waiting until it is ready."""
        self._resting.discard(victim)
        self._children[victim] = Child(self._command(victim), self.folder, victim.value, self._environment(victim))

    def revive(self) -> None:
        """Start again who ended by itself, as a service manager does: a host whose Temporal is away at its start says so and ends."""
        for victim in SERVICE:
            if victim not in self._resting and self._children[victim].has_ended:
                self.revivals[victim] += 1
                self.start(victim)

    def rent(self, command: Sequence[str]) -> None:
        """Start the renter by this command, as it is started again after each of its deaths."""
        self._caller = command
        self.start(Victim.RENTER)

    @property
    def has_rented(self) -> bool:
        """Whether the renter has done all it had to do. Raises NotReadyError when it failed."""
        renter = self._children[Victim.RENTER]
        if Victim.RENTER in self._resting or not renter.has_ended:
            return False
        if "Traceback" in renter.output:
            raise NotReadyError(renter.output[-_TOLD:])
        return True

    def ready(self) -> None:
        """Wait until everybody is. Raises NotReadyError."""

        def look() -> bool:
            self.revive()
            hosts = [self._children[host] for host in _HOSTS]
            return not is_free(self.temporal_port) and all("ready" in host.output for host in hosts) and self._are_healthy()

        if not until(look, _UP_S):
            last = "\n".join(f"{victim}: {child.output[-_TOLD:]}" for victim, child in self._children.items())
            raise NotReadyError(f"Not everybody was ready within {_UP_S:g} s.\n{last}")

    def stop(self) -> None:
        """In order, as an operator does. Not an error when it has been done before."""
        for victim in (Victim.RENTER, Victim.API, *_HOSTS, Victim.TEMPORAL):
            if child := self._children.pop(victim, None):
                child.stop()

    def leftovers(self) -> list[str]:
        """Processes, ports and folders of calls that are still there after `stop`."""
        until(lambda: not self._processes(), _GONE_S)
        left = [f"process {told}" for told in self._processes()]
        left += [f"port {port}" for port in (*self._ports.values(), self.temporal_port) if not is_free(port)]
        folders = [path for host in _HOSTS for pattern in ("calls/*/*", "calls/.*") for path in self.folder.glob(f"{host}/{pattern}")]
        return left + [f"folder {path.relative_to(self.folder)}" for path in folders]

    def _begin(self, stack: ExitStack) -> None:
        stack.callback(self.stop)
        # Whoever tools run as writes here.
        self.effects.mkdir()
        self.effects.chmod(0o777)
        self._policy = self.folder / "policy.json"
        programs = self.folder / "programs"
        programs.mkdir(mode=0o755)
        self._policy.write_text(json.dumps({"write": [str(self.effects)], "read": [str(programs)]}), "utf-8")
        self.data = make_catalog(self.folder / "data", writes=self.effects, limits=self._limits)
        if self._imported:
            (self.data / "mcp.json").write_text(json.dumps({"mcpServers": self._imported(programs, self.effects)}), "utf-8")
        self.temporal_port = free_port()
        self._ports = {door: free_port() for door in Door}
        self.database, self._database_url = self._shared_database(stack)
        for victim in (Victim.TEMPORAL, *_HOSTS, Victim.API):
            self.start(victim)
            if victim is Victim.TEMPORAL:
                self._children[victim].ready(lambda: not is_free(self.temporal_port), _UP_S)
        self.ready()

    def _shared_database(self, stack: ExitStack) -> tuple[str, str]:
        """What it is, and its address. Raises NotReadyError where it is to be PostgreSQL and there is none."""
        binaries = postgres_binaries() if self._wanted is not DatabaseKind.SQLITE else None
        if binaries is not None:
            postgres = Postgres(binaries, self.folder / "postgres")
            stack.callback(postgres.child.stop)
            postgres.create("chaos")
            return "PostgreSQL", postgres.async_url("chaos")
        if self._wanted is DatabaseKind.POSTGRESQL:
            raise NotReadyError("PostgreSQL is not installed; --database sqlite does without.")
        return "SQLite", f"sqlite+aiosqlite:///{self.folder / 'shared.db'}"

    def _command(self, victim: Victim) -> list[str]:
        match victim:
            case Victim.TEMPORAL:
                folder = self.folder / "temporal"
                folder.mkdir(exist_ok=True)
                config = read_config(ROOT / "temporal-dev.yaml")
                return server_command(temporal_binary(), config, folder, self.temporal_port, free_port())
            case Victim.API:
                return [sys.executable, "-m", "workers", "api"]
            case Victim.UP:
                return [sys.executable, "-m", "workers", "up"]
            case Victim.WORKER_1 | Victim.WORKER_2:
                return [sys.executable, "-m", "workers", "worker"]
            case Victim.RENTER:
                return [sys.executable, *self._caller]

    def _environment(self, victim: Victim) -> dict[str, str]:
        if victim is Victim.TEMPORAL:
            return dict(read_config(ROOT / "temporal-dev.yaml").environment)
        settings = {
            "TEMPORAL_ADDRESS": self.temporal_address,
            "DATABASE_URL": self._database_url,
            "DATABASE_POOL_SIZE": "20",
            "CONTENT_STORE": "database",
            "STATE_DIR": str(self.folder / victim.value),
            "DATA_DIR": str(self.data),
            "SANDBOX_POLICY": str(self._policy),
            "TEMPORAL_CONFIG": str(ROOT / "temporal-dev.yaml"),
            **self._settings,
            "FASTAPI_PORT": str(self._ports[Door.UP if victim is Victim.UP else Door.API]),
        }
        if self._lanes is not None:
            settings["LANES"] = self._lanes
        return {"PYTHONPATH": python_path(), "COLUMNS": "300"} | {f"TOOL_AGENT_{name}": value for name, value in settings.items()}

    def _are_healthy(self) -> bool:
        with suppress(httpx.TransportError):
            return all(httpx.get(f"{url}/health", trust_env=False, timeout=10).is_success for url in self.urls.values())
        return False

    def _processes(self) -> list[str]:
        """Those that name our folder, or carry the mark of a host in it; not the database, which stays until the end."""
        signs = [str(self.folder), *(Owner.state_of(self.folder / host) for host in _HOSTS)]
        return [told for process in psutil.process_iter() if (told := _told(process, signs)) and "postgres" not in told]


def _told(process: psutil.Process, signs: list[str]) -> str | None:
    # One that has gone meanwhile, or is a zombie, is not there.
    with suppress(psutil.Error, OSError):
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return None
        command = " ".join(process.cmdline())
        known = [command, *process.environ().values()]
        return f"{process.pid} {command[:200]}" if any(sign in text for sign in signs for text in known) else None
    return None
