"""Hosts, the calls that they take, and the tools that they run."""

import re
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator

from toolagent.client.names import TASK_QUEUE
from toolagent_service.calls.dispatch import DEFAULT_BUCKET
from toolagent_service.contracts.lanes import LaneMode
from workers.settings.part import HttpAddress, Names, Number, Part, Seconds

_BEATS_IN_A_LEASE = 3
"""The least heartbeats in a lease, so that one or two may be late before the host counts as dead."""

_RESERVED_QUEUES = (TASK_QUEUE, "control")


class HostSettings(Part):
    """Hosts."""

    host_id: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")] = None
    """Name of this host; unset: one is made and kept in the state directory."""

    host_heartbeat_s: Seconds = 2.0
    """Seconds between renewals of a host's lease."""

    host_lease_s: Seconds = 10.0
    """Seconds without renewal after which a host counts as dead; at least three heartbeats."""

    @field_validator("host_lease_s")
    @classmethod
    def _check_lease(cls, value: float, others: ValidationInfo) -> float:
        heartbeat = others.data.get("host_heartbeat_s")
        if heartbeat is None:  # the heartbeat is wrong, which is reported
            return value
        least = round(_BEATS_IN_A_LEASE * heartbeat, 6)
        if value < least:
            raise ValueError(
                f"a lease of {value:g} s is too short for a heartbeat every {heartbeat:g} s: set it to {least:g} or more, "
                "or lower TOOL_AGENT_HOST_HEARTBEAT_S"
            )
        return value


class CallSettings(Part):
    """Calls."""

    bucket_limits: dict[str, Number] = {"default": 16, "http": 5, "ai": 2, "database": 3}
    """Calls at once by bucket, for each of its queues on this host; JSON."""

    lanes: LaneMode = LaneMode.HARMLESS
    """Short calls that share a lane: `off` (none), `harmless` (tools without side effects) or `all`."""

    queue_timeout_s: Seconds = 600.0
    """Seconds that a call may wait for a slot."""

    shutdown_grace_s: Seconds = 10.0
    """Seconds for running calls and steps of tasks when the service stops."""

    http_request_allow: Names = ()
    """Private hosts, addresses or CIDRs that `http_request` may reach; comma-separated."""

    runcomfy_url: str | None = None
    """RunComfy's server API, as far as `/users`: `https://api.runcomfy.net/prod/api`; unset: its tools answer `unavailable`."""

    callback_allow: Names = ()
    """Private hosts, addresses or CIDRs that callbacks may go to; comma-separated."""

    external_tools_allow: Names = ()
    """Private hosts, addresses or CIDRs that external tool tables, and their tools, may be at; comma-separated."""

    mcp_allow: Names = ()
    """Private hosts, addresses or CIDRs that registered MCP servers may be at; comma-separated."""

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


class KeepingSettings(Part):
    """Keeping tools."""

    health_check_interval_s: Annotated[float, Field(ge=1, le=86_400)] = 60.0
    """Seconds between two looks at the tools that run on all hosts; the host that started last decides."""

    cold_tool_idle_timeout_s: Seconds = 300.0
    """Seconds after which an unused cold tool is stopped, at the next look."""

    hot_tool_max_containers: Annotated[int, Field(ge=0)] = 5
    """The most processes and containers of hot tools that a host keeps; more are stopped when they are unused."""

    eviction_policy: Literal["lru"] = "lru"
    """Which hot tool goes when there are too many: `lru`, the one that was used longest ago."""


Interval: TypeAlias = Annotated[float, Field(ge=10, le=604_800)]
"""Seconds, up to a week."""


class TableSettings(Part):
    """What others have."""

    external_tools_refresh_s: Interval = 3600.0
    """Seconds after which an external tool table is fetched again, at the next look at what runs."""

    mcp_refresh_s: Interval = 3600.0
    """Seconds after which a registered MCP server is asked for its tools again, at the next look at what runs."""

    knowhub_url: HttpAddress | None = None
    """KnowHub's URL, without `/api/resource`; its key is the secret `KNOWHUB`; unset: nothing is synchronised with it."""

    knowhub_interval_s: Interval = 3600.0
    """Seconds between two synchronisations with KnowHub; one follows each change of the catalog in addition."""

    @field_validator("knowhub_url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        """The URL is in answers and histories, so it may have no secret."""
        if value is not None and "@" in urlsplit(value).netloc:
            raise ValueError("a user or password has no place in it; set the secret KNOWHUB (TOOL_AGENT_SECRET_KNOWHUB)")
        return value


class RunningSettings(Part):
    """Running tools."""

    tool_start_timeout_s: Seconds = 300.0
    """Seconds for building and starting a tool."""

    tool_health_timeout_s: Seconds = 30.0
    """Seconds until a started tool must be healthy."""

    stop_grace_s: Seconds = 5.0
    """Seconds for a tool to end, or to become idle after a cancelled call."""
