"""The embedded Temporal: the real server with its state in a file, as a child process that does not outlive us."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
import yaml
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from engine.network.ports import free_port
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.store.connection.sqlite_files import damage_at_start
from workers.failures import CannotRun
from workers.ports import require_free
from workers.settings.temporal import TemporalSettings

TEMPORAL_REMEDY = (
    "Restore its backup, or remove it with its `-wal` and `-shm`: calls and tasks that were running are lost, what is recorded stays "
    '("Backup and restore" in docs/operations.md).'
)
_RESTART_DELAY_S = 1.0
_MAX_RESTART_DELAY_S = 10.0
_STOP_GRACE_S = 10.0
_DATABASE = "temporal.db"
_LOG, _LAST_LINES = "server.log", 3
_MAX_LOG_BYTES = 5_000_000

_log = structlog.stdlib.get_logger(__name__)


class DevServerConfig(BaseModel):
    """`temporal-dev.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespace: str
    retention_hours: int
    ip: str
    port: int
    ui_port: int
    search_attributes: dict[str, str]
    dynamic_config: dict[str, JsonValue]
    sqlite_pragmas: dict[str, str]
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class DevServer:
    """The addresses of the embedded server."""

    address: str
    ui_url: str


def read_config(path: Path) -> DevServerConfig:
    """Raises CannotRun with the name of a wrong field."""
    try:
        return DevServerConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise CannotRun(f"{path} cannot be used: {error}") from error


@asynccontextmanager
async def embedded_temporal(
    settings: TemporalSettings, config: DevServerConfig, folder: Path, guardian: Guardian, owner: Owner
) -> AsyncGenerator[DevServer]:
    """Run the server until the block ends. A server that dies is started again with its state. Raises CannotRun."""
    port = _port(settings.temporal_port, config.port, config.ip, "TOOL_AGENT_TEMPORAL_PORT")
    ui_port = _port(settings.temporal_ui_port, config.ui_port, config.ip, "TOOL_AGENT_TEMPORAL_UI_PORT")
    command = server_command(temporal_binary(settings.temporal_binary), config, folder, port, ui_port)
    # A server with a damaged database would start and end again and again.
    if said := await asyncio.to_thread(damage_at_start, folder / _DATABASE):
        raise CannotRun(f"Temporal's database {folder / _DATABASE} is damaged ({said}). {TEMPORAL_REMEDY}")
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    environment = {**config.environment, **owner.environment}
    start = partial(_start, command, environment, folder, guardian)
    keeper = asyncio.create_task(_keep(await start(), start, folder, guardian))
    try:
        yield DevServer(address=f"{config.ip}:{port}", ui_url=f"http://{config.ip}:{ui_port}")
    finally:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper


async def _keep(process: Process, start: Callable[[], Awaitable[Process]], folder: Path, guardian: Guardian) -> None:
    try:
        while True:
            code = await process.wait()
            guardian.release(process.pid)
            _log.error("temporal_ended", exit_code=code, log=str(folder / _LOG), restart_in_s=_RESTART_DELAY_S)
            process = await _restart(start)
    finally:
        await _stop(process)
        guardian.release(process.pid)


async def _restart(start: Callable[[], Awaitable[Process]]) -> Process:
    """Try until it starts: a full disk or a lack of processes may pass."""
    delay = _RESTART_DELAY_S
    while True:
        await asyncio.sleep(delay)
        try:
            return await start()
        except OSError as error:
            delay = min(2 * delay, _MAX_RESTART_DELAY_S)
            _log.error("temporal_not_restarted", error=str(error), again_in_s=delay)


async def _start(command: list[str], environment: Mapping[str, str], folder: Path, guardian: Guardian) -> Process:
    with _log_file(folder).open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment},
        )
    guardian.watch(process.pid)
    return process


def _log_file(folder: Path) -> Path:
    """The log is continued, so that the end of a crashed server can be read. A log that is too large is replaced."""
    log = folder / _LOG
    if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
        log.replace(folder / f"{_LOG}.1")
    return log


def last_words(folder: Path) -> str:
    """Names the log of the server, and quotes its last lines."""
    log = folder / _LOG
    try:
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    except OSError as error:
        return f"Its log {str(log)!r} cannot be read ({error.strerror})."
    return f"Its log is {str(log)!r}; it ends: {' | '.join(said)[-1000:]}" if said else f"Its log {str(log)!r} is empty."


async def _stop(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(_STOP_GRACE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def server_command(binary: str, config: DevServerConfig, folder: Path, port: int, ui_port: int) -> list[str]:
    """The command line of the embedded server. With `setpriv`, the server dies with the thread that started it."""
    leash = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    command = [*leash, binary, "server", "start-dev", "--ip", config.ip, "--port", str(port), "--ui-port", str(ui_port)]
    command += ["--db-filename", str(folder / _DATABASE), "--namespace", config.namespace, "--log-level", "warn"]
    for name, kind in config.search_attributes.items():
        command += ["--search-attribute", f"{name}={kind}"]
    for name, value in config.dynamic_config.items():
        command += ["--dynamic-config-value", f"{name}={json.dumps(value)}"]
    for name, value in config.sqlite_pragmas.items():
        command += ["--sqlite-pragma", f"{name}={value}"]
    return command


def _port(wanted: int | None, default: int, ip: str, setting: str) -> int:
    port = default if wanted is None else wanted
    if port == 0:
        return free_port(ip)
    require_free(ip, port, setting)
    return port


def temporal_binary(named: Path | None = None) -> str:
    """The `temporal` program. Raises CannotRun if it does not exist."""
    candidates = [str(named)] if named else [str(Path(sys.prefix) / "bin" / "temporal"), "temporal"]
    for candidate in candidates:
        if found := shutil.which(candidate):
            return found
    raise CannotRun(f"The program {candidates[0]!r} is not there. Run `make setup`, or set TOOL_AGENT_TEMPORAL_BINARY.")
